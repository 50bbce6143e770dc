/* What the exported functions share: one table of slots and the start of the interpreter. */
#ifndef ACLNN_EMU_SHIM_H
#define ACLNN_EMU_SHIM_H

#include <stddef.h>
#include <stdint.h>

#define EMU_EXPORT __attribute__((visibility("default")))

/* One exported function: its name and the type of its slot in exact-width words. */
struct emu_function {
  const char *name;
  const char *type;
};

/* What the Python side is given to fill the table; every field is one machine word. */
struct emu_link {
  uintptr_t version;
  uintptr_t count;
  const struct emu_function *functions;
  void **slots;
  void (*keep_message)(const char *text);
  void (*arm_exit)(void);
  int (*at_exit)(void);
  uintptr_t ready;
  int *interrupted;
};

#define EMU_LINK_VERSION 1

/* The table itself, generated with the forwarders. */
extern const struct emu_function emu_functions[];
extern const int emu_count;
extern void *emu_slots[];

EMU_EXPORT extern void **const aclnn_emu_slots;
/* Starts the interpreter if nobody has; the slot, or NULL with a message left for this thread. */
EMU_EXPORT void *aclnn_emu_start(int index);
/* Not 0 when a KeyboardInterrupt came while a slot ran: the Python program around us gets it now that the slot has returned. */
EMU_EXPORT extern int aclnn_emu_interrupted;
EMU_EXPORT void aclnn_emu_interrupt(void);
/* A message for the calling thread from C alone. */
EMU_EXPORT void aclnn_emu_say(const char *text);
/* aclGetRecentErrMsg. */
EMU_EXPORT const char *aclnn_emu_message(int index);
/* Copies a slot's numbers into an array that the caller frees with delete[]. */
EMU_EXPORT int aclnn_emu_numbers(int index, uintptr_t tensor, int64_t **values, uint64_t *count);

#define EMU_RETURNED() (__builtin_expect(aclnn_emu_interrupted, 0) ? aclnn_emu_interrupt() : (void)0)

/* The slot of a function, NULL when the interpreter cannot serve. */
#define EMU_SLOT(index) \
  (__atomic_load_n(&aclnn_emu_slots[index], __ATOMIC_ACQUIRE) \
       ? __atomic_load_n(&aclnn_emu_slots[index], __ATOMIC_ACQUIRE) \
       : aclnn_emu_start(index))

#endif
