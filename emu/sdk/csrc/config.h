/* The file aclnn_emu.conf beside the libraries: lines of key=value. Found from the library's own path, so the directory can be moved. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct config {
  char path[PATH_MAX];       /* of the file itself */
  char executable[PATH_MAX]; /* the python that the directory was built with */
  char libpython[PATH_MAX];  /* its shared library, empty when it has none */
  char version[32];          /* its version, as in 3.11 */
};

static void config_value(const char *line, const char *key, char *value, size_t size) {
  size_t n = strlen(key);
  if (strncmp(line, key, n) == 0 && line[n] == '=') snprintf(value, size, "%s", line + n + 1);
}

static int config_read(struct config *c, const void *inside, char *error, size_t size) {
  Dl_info info;
  char real[PATH_MAX], line[PATH_MAX + 64];
  memset(c, 0, sizeof *c);
  if (dladdr(inside, &info) == 0 || realpath(info.dli_fname, real) == NULL) {
    snprintf(error, size, "the library does not know its own path");
    return 0;
  }
  *strrchr(real, '/') = '\0';
  if (snprintf(c->path, sizeof c->path, "%s/aclnn_emu.conf", real) >= (int)sizeof c->path) {
    snprintf(error, size, "%.900s is too long a path", real);
    return 0;
  }
  FILE *file = fopen(c->path, "re");
  if (file == NULL) {
    snprintf(error, size, "%.900s: %s", c->path, strerror(errno));
    return 0;
  }
  while (fgets(line, sizeof line, file) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    config_value(line, "executable", c->executable, sizeof c->executable);
    config_value(line, "libpython", c->libpython, sizeof c->libpython);
    config_value(line, "version", c->version, sizeof c->version);
  }
  fclose(file);
  if (c->executable[0] && c->version[0]) return 1;
  snprintf(error, size, "%.800s names no executable or no version: build the SDK again", c->path);
  return 0;
}
