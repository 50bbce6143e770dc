/* Messages of one thread: those that C leaves itself, and the text that aclGetRecentErrMsg last gave out. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct emu_thread {
  char *pending; /* said by C, not asked for yet */
  char *shown;   /* what the thread was given last; lives until its next call */
};

static pthread_key_t thread_key;
static pthread_once_t thread_once = PTHREAD_ONCE_INIT;

static void thread_free(void *data) {
  struct emu_thread *t = data;
  free(t->pending);
  free(t->shown);
  free(t);
}

static void thread_key_make(void) { pthread_key_create(&thread_key, thread_free); }

static struct emu_thread *emu_thread(void) {
  pthread_once(&thread_once, thread_key_make);
  struct emu_thread *t = pthread_getspecific(thread_key);
  if (t == NULL && (t = calloc(1, sizeof *t)) != NULL) pthread_setspecific(thread_key, t);
  return t;
}

static void emu_say(const char *text) {
  struct emu_thread *t = emu_thread();
  if (t == NULL) return;
  free(t->pending);
  t->pending = strdup(text);
}

static void emu_keep_message(const char *text) {
  struct emu_thread *t = emu_thread();
  if (t == NULL) return;
  free(t->shown);
  t->shown = strdup(text);
}

static const char *emu_kept(void) {
  struct emu_thread *t = emu_thread();
  return t == NULL ? NULL : t->shown;
}

static const char *emu_take_own(void) {
  struct emu_thread *t = emu_thread();
  if (t == NULL || t->pending == NULL) return NULL;
  free(t->shown);
  t->shown = t->pending;
  t->pending = NULL;
  return t->shown;
}
