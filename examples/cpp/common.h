// What the examples share: a check of return codes, and a device buffer that frees itself.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "acl/acl.h"
#include "aclnn/aclnn_base.h"

// Ends the program with the emulator's message when a call did not return 0.
#define CHECK(call)                                                                         \
  do {                                                                                      \
    int code_ = (call);                                                                     \
    if (code_ != 0) {                                                                       \
      const char *text_ = aclGetRecentErrMsg();                                             \
      std::fprintf(stderr, "%s: %d\n%s\n", #call, code_, text_ != nullptr ? text_ : "");     \
      std::exit(1);                                                                         \
    }                                                                                       \
  } while (0)

// Ends the program when something that must hold does not.
#define EXPECT(condition)                                                          \
  do {                                                                             \
    if (!(condition)) {                                                            \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                                \
    }                                                                              \
  } while (0)

// Device memory with a host vector's values.
template <typename T>
class DeviceBuffer {
 public:
  explicit DeviceBuffer(const std::vector<T> &values) : bytes_(values.size() * sizeof(T)) {
    CHECK(aclrtMalloc(&data_, bytes_, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(aclrtMemcpy(data_, bytes_, values.data(), bytes_, ACL_MEMCPY_HOST_TO_DEVICE));
  }
  ~DeviceBuffer() { aclrtFree(data_); }
  DeviceBuffer(const DeviceBuffer &) = delete;
  DeviceBuffer &operator=(const DeviceBuffer &) = delete;

  void *get() const { return data_; }

  std::vector<T> Read() const {
    std::vector<T> values(bytes_ / sizeof(T));
    CHECK(aclrtMemcpy(values.data(), bytes_, data_, bytes_, ACL_MEMCPY_DEVICE_TO_HOST));
    return values;
  }

 private:
  void *data_ = nullptr;
  size_t bytes_;
};

// The workspace that phase 1 asked for; it must live until the stream has run the kernels.
class Workspace {
 public:
  explicit Workspace(uint64_t size) : size_(size) {
    if (size > 0) CHECK(aclrtMalloc(&data_, size, ACL_MEM_MALLOC_HUGE_FIRST));
  }
  ~Workspace() {
    if (data_ != nullptr) aclrtFree(data_);
  }
  Workspace(const Workspace &) = delete;
  Workspace &operator=(const Workspace &) = delete;

  void *get() const { return data_; }
  uint64_t size() const { return size_; }

 private:
  void *data_ = nullptr;
  uint64_t size_;
};

// A contiguous FLOAT tensor over device memory.
inline aclTensor *FloatTensor(const std::vector<int64_t> &shape, void *data) {
  aclTensor *tensor =
      aclCreateTensor(shape.data(), shape.size(), ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, shape.data(), shape.size(), data);
  EXPECT(tensor != nullptr);
  return tensor;
}
