// Nanoseconds of one two-phase call on 16 elements, as a C++ program sees it. Prints name and figure, one a line.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_selu_backward.h"

namespace {

void Check(int code, const char *what) {
  if (code != 0) {
    const char *text = aclGetRecentErrMsg();
    std::fprintf(stderr, "%s: %d %s\n", what, code, text != nullptr ? text : "");
    std::exit(1);
  }
}

double Seconds() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

struct Call {
  aclTensor *grad;
  aclTensor *result;
  aclTensor *out;
  aclrtStream stream;

  void operator()() const {
    uint64_t size = 0;
    aclOpExecutor *executor = nullptr;
    Check(aclnnSeluBackwardGetWorkspaceSize(grad, result, out, &size, &executor), "phase 1");
    Check(aclnnSeluBackward(nullptr, size, executor, stream), "phase 2");
  }
};

template <typename F>
double Best(int rounds, int calls, F run) {
  double best = 1e9;
  for (int i = 0; i < rounds; i++) {
    double start = Seconds();
    run(calls);
    best = std::min(best, (Seconds() - start) / calls);
  }
  return best * 1e9;
}

}  // namespace

int main() {
  Check(aclInit(nullptr), "aclInit");
  Check(aclrtSetDevice(0), "aclrtSetDevice");
  aclrtStream stream = nullptr;
  Check(aclrtCreateStream(&stream), "aclrtCreateStream");
  const int64_t shape[] = {16};
  const float values[] = {1.0f, -0.5f, 0.0f};
  aclTensor *tensors[3];
  void *data = nullptr;
  for (int k = 0; k < 3; k++) {
    std::vector<float> host(16, values[k]);
    Check(aclrtMalloc(&data, 64, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    Check(aclrtMemcpy(data, 64, host.data(), 64, ACL_MEMCPY_HOST_TO_DEVICE), "aclrtMemcpy");
    tensors[k] = aclCreateTensor(shape, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, shape, 1, data);
  }
  Call call{tensors[0], tensors[1], tensors[2], stream};
  call();
  Check(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");
  std::vector<float> result(16);
  Check(aclrtMemcpy(result.data(), 64, data, 64, ACL_MEMCPY_DEVICE_TO_HOST), "aclrtMemcpy");
  for (float value : result) {
    if (value != -0.5f + 1.7580993f) {
      std::fprintf(stderr, "wrong result: %.9g\n", value);
      return 1;
    }
  }

  std::printf("pipelined %.0f\n", Best(30, 1000, [&](int n) {
                for (int i = 0; i < n; i++) call();
                Check(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");
              }));
  std::printf("synchronous %.0f\n", Best(30, 300, [&](int n) {
                for (int i = 0; i < n; i++) {
                  call();
                  Check(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");
                }
              }));
  std::printf("empty %.0f\n", Best(30, 3000, [&](int n) {
                int32_t device;
                for (int i = 0; i < n; i++) Check(aclrtGetDevice(&device), "aclrtGetDevice");
              }));
  std::printf("phase1 %.0f\n", Best(30, 300, [&](int n) {
                uint64_t size = 0;
                std::vector<aclOpExecutor *> executors(static_cast<size_t>(n));
                for (auto &executor : executors)
                  Check(aclnnSeluBackwardGetWorkspaceSize(call.grad, call.result, call.out, &size, &executor), "phase 1");
                for (auto executor : executors) Check(aclDestroyAclOpExecutor(executor), "destroy");
              }));
  Check(aclrtDestroyStream(stream), "aclrtDestroyStream");
  Check(aclrtResetDevice(0), "aclrtResetDevice");
  Check(aclFinalize(), "aclFinalize");
  return 0;
}
