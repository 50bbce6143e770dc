/* The interpreter: the one that is in the process already, or our own, through functions that every CPython since 3.10 exports.
 *
 * PyConfig and PyPreConfig are passed as opaque blocks, larger than any version's, so that no header of a version is needed. */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct python_status { /* PyStatus, returned by value */
  int type;
  const char *function;
  const char *message;
  int exitcode;
};

struct python {
  int host; /* the process was Python before we came */
  int (*PyGILState_Ensure)(void);
  void (*PyGILState_Release)(int);
  void *(*PyEval_SaveThread)(void);
  void (*PyEval_RestoreThread)(void *);
  int (*PyGILState_Check)(void);
  int (*PyErr_CheckSignals)(void);
  void (*PyErr_Clear)(void);
  void (*PyErr_SetInterrupt)(void);
  void *(*PyDict_New)(void);
  void *(*PyRun_String)(const char *, int, void *, void *);
};

static int python_functions(struct python *p, void *from) {
#define FIND(name) if ((*(void **)&p->name = dlsym(from, #name)) == NULL) return 0
  FIND(PyGILState_Ensure);
  FIND(PyGILState_Release);
  FIND(PyEval_SaveThread);
  FIND(PyEval_RestoreThread);
  FIND(PyGILState_Check);
  FIND(PyErr_CheckSignals);
  FIND(PyErr_Clear);
  FIND(PyErr_SetInterrupt);
  FIND(PyDict_New);
  FIND(PyRun_String);
#undef FIND
  return 1;
}

static int python_initialized(void) {
  int (*initialized)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "Py_IsInitialized");
  return initialized != NULL && initialized();
}

static int python_host(struct python *p) {
  p->host = python_initialized() && python_functions(p, RTLD_DEFAULT);
  return p->host;
}

/* Releases the GIL if this thread holds it: the thread state to give to python_take_back, or NULL. */
static void *python_let_go(void) {
  struct python p;
  return python_host(&p) && p.PyGILState_Check() ? p.PyEval_SaveThread() : NULL;
}

static void python_take_back(void *held) {
  struct python p;
  if (held != NULL && python_host(&p)) p.PyEval_RestoreThread(held);
}

/* Runs the bootstrap in a namespace of its own. What goes wrong is written to `report` by the bootstrap itself. */
static void python_bootstrap(struct python *p, const char *config_path, uintptr_t link, int report) {
  size_t n = strlen(config_path), size = sizeof emu_bootstrap + 2 * n + 200;
  char *code = malloc(size), *hex = malloc(2 * n + 1);
  if (code != NULL && hex != NULL) {
    for (size_t i = 0; i < n; i++) snprintf(hex + 2 * i, 3, "%02x", (unsigned char)config_path[i]);
    hex[2 * n] = '\0';
    snprintf(code, size, "%s\nstart('%s', %llu, %d, %d)\n", emu_bootstrap, hex, (unsigned long long)link, report, p->host);
    void *names = p->PyDict_New();
    const int file_input = 257; /* Py_file_input */
    if (names == NULL || p->PyRun_String(code, file_input, names, names) == NULL) p->PyErr_Clear();
  }
  free(hex);
  free(code);
}

static int python_failed(struct python_status status, char *error, size_t size) {
  if (status.type == 0) return 0;
  snprintf(error, size, "%.200s: %.600s", status.function ? status.function : "Python", status.message ? status.message : "it exits");
  return 1;
}

static int python_initialize(void *library, const struct config *c, char *error, size_t size) {
  typedef struct python_status (*preinit_fn)(const void *);
  typedef struct python_status (*argv_fn)(void *, ssize_t, char *const *);
  typedef struct python_status (*init_fn)(const void *);
  union { int words[1024]; void *align; } preconfig;
  union { char bytes[1 << 16]; void *align; } *config = calloc(1, sizeof *config);
  void (*preconfig_init)(void *) = (void (*)(void *))dlsym(library, "PyPreConfig_InitIsolatedConfig");
  preinit_fn preinit = (preinit_fn)dlsym(library, "Py_PreInitialize");
  void (*config_init)(void *) = (void (*)(void *))dlsym(library, "PyConfig_InitPythonConfig");
  argv_fn set_argv = (argv_fn)dlsym(library, "PyConfig_SetBytesArgv");
  init_fn init = (init_fn)dlsym(library, "Py_InitializeFromConfig");
  void (*clear)(void *) = (void (*)(void *))dlsym(library, "PyConfig_Clear");
  int ok = 0;
  if (config == NULL || !preconfig_init || !preinit || !config_init || !set_argv || !init || !clear) {
    snprintf(error, size, "%.800s is no CPython library", c->libpython);
  } else {
    /* Isolated: no environment variables, and the program's locale stays what it is. */
    memset(&preconfig, 0, sizeof preconfig);
    preconfig_init(&preconfig);
    preconfig.words[7] = 1; /* utf8_mode: the eighth int in every version since 3.8 */
    /* As the command line `python -I -S -c pass`: the path of the executable says where the standard library is. */
    char *argv[] = {(char *)c->executable, "-I", "-S", "-c", "pass", NULL};
    config_init(config);
    ok = !python_failed(preinit(&preconfig), error, size) && !python_failed(set_argv(config, 5, argv), error, size) &&
         !python_failed(init(config), error, size);
    clear(config);
  }
  free(config);
  return ok;
}

/* Starts our own interpreter in the calling thread, which then holds the GIL. */
static int python_start(struct python *p, const struct config *c, char *error, size_t size) {
  static const int signals[] = {SIGINT, SIGPIPE, SIGXFSZ};
  struct sigaction before[3];
  p->host = 0;
  if (c->libpython[0] == '\0') {
    snprintf(error, size,
             "%.800s has no shared libpython, so a program that is not Python cannot load it. Build the SDK with a Python that has one "
             "(Debian: apt install libpython3; pyenv: --enable-shared).",
             c->executable);
    return 0;
  }
  if (access(c->executable, X_OK) != 0) {
    snprintf(error, size, "%.800s: the Python that this SDK was built with %s", c->executable,
             errno == EACCES ? "may not be run by this user; build an SDK with a Python that it may run" : "is gone; build the SDK again");
    return 0;
  }
  void *library = dlopen(c->libpython, RTLD_NOW | RTLD_GLOBAL);
  if (library == NULL) {
    snprintf(error, size, "%.900s", dlerror());
    return 0;
  }
  const char *(*version)(void) = (const char *(*)(void))dlsym(library, "Py_GetVersion");
  size_t n = strlen(c->version);
  if (version == NULL || !python_functions(p, library)) {
    snprintf(error, size, "%.800s is no CPython library", c->libpython);
    return 0;
  }
  if (strncmp(version(), c->version, n) != 0 || version()[n] != '.') {
    snprintf(error, size, "%.800s is Python %.20s, the SDK was built with %s", c->libpython, version(), c->version);
    return 0;
  }
  if (dlsym(RTLD_DEFAULT, "Py_GetVersion") != (void *)version) {
    snprintf(error, size, "another libpython is loaded already; %.800s cannot be used beside it", c->libpython);
    return 0;
  }
  for (int i = 0; i < 3; i++) sigaction(signals[i], NULL, &before[i]);
  int ok = python_initialize(library, c, error, size);
  for (int i = 0; i < 3; i++) sigaction(signals[i], &before[i], NULL);
  /* A SIGINT that came while Python's handler stood: the program gets it now. */
  if (ok && p->PyErr_CheckSignals() != 0) {
    p->PyErr_Clear();
    kill(getpid(), SIGINT);
  }
  return ok;
}
