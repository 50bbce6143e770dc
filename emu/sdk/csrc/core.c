/* The core of the libraries: it finds or starts a Python interpreter and has the table of slots filled.
 *
 * Nothing here is linked to libpython: every function of it is looked up at run time. A start that fails leaves the table empty, and
 * then every exported function returns an error. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bootstrap.h"
#include "config.h"
#include "messages.h"
#include "python.h"

void **const aclnn_emu_slots = emu_slots;

enum state { NEVER, STARTING, RUNNING, FAILED, FORKED };

static int state = NEVER;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t settled = PTHREAD_COND_INITIALIZER;
static pthread_t starter;
static char failure[4096];
static struct emu_link the_link;
static struct python python;

int aclnn_emu_interrupted = 0;

void aclnn_emu_interrupt(void) {
  if (__atomic_exchange_n(&aclnn_emu_interrupted, 0, __ATOMIC_ACQ_REL) && python.host) python.PyErr_SetInterrupt();
}

static int now(void) { return __atomic_load_n(&state, __ATOMIC_ACQUIRE); }

/* In the child of a fork the interpreter's threads do not exist and its locks may be held for ever. */
static void in_child(void) {
  int s = now();
  if (s != RUNNING && s != STARTING) return;
  __atomic_store_n(&state, FORKED, __ATOMIC_RELEASE);
  for (int i = 0; i < emu_count; i++) __atomic_store_n(&emu_slots[i], NULL, __ATOMIC_RELEASE);
  pthread_mutex_init(&lock, NULL);
  pthread_cond_init(&settled, NULL);
}

/* Runs first among the exit handlers: what Python wants to say at the end is said while every library is whole; then the GIL is
 * kept, so that no Python thread runs while libraries are torn down. */
static void at_exit(void) {
  static int done;
  if (now() != RUNNING || python.host || __atomic_exchange_n(&done, 1, __ATOMIC_ACQ_REL)) return;
  if (the_link.at_exit != NULL) the_link.at_exit();
  python.PyGILState_Ensure();
}

static void arm_exit(void) { atexit(at_exit); }

static void fail(const char *what, const char *detail) {
  snprintf(failure, sizeof failure, "aclnn-emu: the emulator did not start: %s%s%s", what, detail[0] ? ": " : "", detail);
}

/* Runs the bootstrap with the GIL held; 1 when the table is full. */
static int fill_table(const char *config_path) {
  int pipes[2];
  char detail[2048] = "";
  if (pipe(pipes) != 0) {
    fail("no pipe", strerror(errno));
    return 0;
  }
  the_link = (struct emu_link){EMU_LINK_VERSION, (uintptr_t)emu_count, emu_functions, emu_slots, emu_keep_message,
                               arm_exit,         NULL,                 0,             &aclnn_emu_interrupted};
  python_bootstrap(&python, config_path, (uintptr_t)&the_link, pipes[1]);
  close(pipes[1]);
  ssize_t n = read(pipes[0], detail, sizeof detail - 1);
  close(pipes[0]);
  if (n > 0) detail[n] = '\0';
  int full = the_link.ready == 1;
  for (int i = 0; i < emu_count; i++) full = full && emu_slots[i] != NULL;
  if (full) return 1;
  for (int i = 0; i < emu_count; i++) emu_slots[i] = NULL;
  fail("Python could not load it", detail[0] ? detail : "no reason was given");
  return 0;
}

struct start {
  struct config config;
  int ok;
  int finished;
  pthread_mutex_t lock;
  pthread_cond_t done;
};

static void finish(struct start *s, int ok) {
  pthread_mutex_lock(&s->lock);
  s->ok = ok;
  s->finished = 1;
  pthread_cond_signal(&s->done);
  pthread_mutex_unlock(&s->lock);
}

/* The interpreter's own first thread: a deep stack, no signals, and it never ends, so that its identity is never another thread's. */
static void *home_thread(void *argument) {
  struct start *s = argument;
  char detail[1024];
  int ok = 0;
  if (!python_start(&python, &s->config, detail, sizeof detail))
    fail("the interpreter does not run", detail);
  else {
    ok = fill_table(s->config.path);
    python.PyEval_SaveThread();
  }
  finish(s, ok);
  for (;;) pause();
  return NULL;
}

static int start_own(const struct config *config) {
  struct start s = {.config = *config};
  pthread_t thread;
  pthread_attr_t attributes;
  sigset_t all, before;
  pthread_mutex_init(&s.lock, NULL);
  pthread_cond_init(&s.done, NULL);
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 16u << 20);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&thread, &attributes, home_thread, &s);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  if (error != 0) {
    fail("no thread", strerror(error));
    return 0;
  }
  pthread_mutex_lock(&s.lock);
  while (!s.finished) pthread_cond_wait(&s.done, &s.lock);
  pthread_mutex_unlock(&s.lock);
  return s.ok;
}

static int start_now(void) {
  char detail[1024];
  struct config config;
  if (!config_read(&config, (const void *)&aclnn_emu_start, detail, sizeof detail)) {
    fail("its configuration cannot be read", detail);
    return 0;
  }
  if (python_host(&python)) {
    int gil = python.PyGILState_Ensure();
    int ok = fill_table(config.path);
    python.PyGILState_Release(gil);
    return ok;
  }
  return start_own(&config);
}

static int start_once(void) {
  /* A host that is Python may hold the GIL here (PyDLL); the starting thread needs it. */
  void *held = python_let_go();
  pthread_mutex_lock(&lock);
  if (state == NEVER) {
    starter = pthread_self();
    __atomic_store_n(&state, STARTING, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
    pthread_atfork(NULL, NULL, in_child);
    int ok = start_now();
    if (ok) arm_exit();
    if (!ok && write(2, failure, strlen(failure)) > 0 && write(2, "\n", 1) < 0) errno = 0;
    pthread_mutex_lock(&lock);
    __atomic_store_n(&state, ok ? RUNNING : FAILED, __ATOMIC_RELEASE);
    pthread_cond_broadcast(&settled);
  } else if (state == STARTING && pthread_equal(starter, pthread_self())) {
    pthread_mutex_unlock(&lock);
    python_take_back(held);
    return STARTING;
  }
  while (state == STARTING) pthread_cond_wait(&settled, &lock);
  int result = state;
  pthread_mutex_unlock(&lock);
  python_take_back(held);
  return result;
}

void *aclnn_emu_start(int index) {
  int s = now();
  if (s == NEVER || s == STARTING) s = start_once();
  if (s == RUNNING) return __atomic_load_n(&emu_slots[index], __ATOMIC_ACQUIRE);
  char text[sizeof failure + 128];
  if (s == FAILED)
    snprintf(text, sizeof text, "%s (in %s)", failure, emu_functions[index].name);
  else if (s == FORKED)
    snprintf(text, sizeof text,
             "aclnn-emu: %s was called in the child of a fork: the devices belong to the parent. Fork before the first acl call, or exec.",
             emu_functions[index].name);
  else
    snprintf(text, sizeof text, "aclnn-emu: %s was called while the emulator starts", emu_functions[index].name);
  emu_say(text);
  return NULL;
}

void aclnn_emu_say(const char *text) { emu_say(text); }

const char *aclnn_emu_message(int index) {
  const char *own = emu_take_own();
  int (*take)(void) = NULL;
  if (own != NULL) return own;
  if (now() == RUNNING) take = (int (*)(void))__atomic_load_n(&emu_slots[index], __ATOMIC_ACQUIRE);
  return take != NULL && take() == 1 ? emu_kept() : NULL;
}

int aclnn_emu_numbers(int index, uintptr_t tensor, int64_t **values, uint64_t *count) {
  int (*get)(uintptr_t, uintptr_t, uintptr_t) = (int (*)(uintptr_t, uintptr_t, uintptr_t))EMU_SLOT(index);
  int64_t found[32];
  uint64_t n = 0;
  if (get == NULL) return 561000;
  int code = get(values != NULL && count != NULL ? tensor : 0, (uintptr_t)found, (uintptr_t)&n);
  if (code != 0) return code;
  /* delete[] must match: the program's operator new[] where there is one; without one delete[] is free. */
  void *(*new_array)(size_t) = (void *(*)(size_t))dlsym(RTLD_DEFAULT, "_Znam");
  size_t bytes = (n ? n : 1) * sizeof(int64_t);
  int64_t *array = new_array != NULL ? new_array(bytes) : malloc(bytes);
  if (array == NULL) {
    emu_say("aclnn-emu: no memory for the array");
    return 561103;
  }
  memcpy(array, found, n * sizeof(int64_t));
  *values = array;
  *count = n;
  return 0;
}
