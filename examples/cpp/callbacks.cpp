// Pinned memory, asynchronous copies, host functions and callbacks in stream order.
#include <pthread.h>

#include <atomic>
#include <thread>

#include "aclnnop/aclnn_selu_backward.h"
#include "common.h"

namespace {

struct Seen {
  const float *values;
  std::atomic<int> calls{0};
  std::atomic<float> first{0.0f};
};

// Runs in stream order: what was queued before it is done, what was queued after it has not begun.
void Look(void *data) {
  Seen *seen = static_cast<Seen *>(data);
  seen->first = seen->values[0];
  seen->calls++;
}

}  // namespace

int main() {
  CHECK(aclInit(nullptr));
  CHECK(aclrtSetDevice(0));
  aclrtContext context = nullptr;
  CHECK(aclrtGetCurrentContext(&context));
  aclrtStream stream = nullptr;
  CHECK(aclrtCreateStream(&stream));

  const size_t bytes = 256 * sizeof(float);
  void *pinned = nullptr, *device = nullptr;
  CHECK(aclrtMallocHost(&pinned, bytes));
  CHECK(aclrtMalloc(&device, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  float *host = static_cast<float *>(pinned);
  for (int i = 0; i < 256; i++) host[i] = 2.0f;

  aclTensor *tensor = FloatTensor({256}, device);
  uint64_t size = 0;
  aclOpExecutor *executor = nullptr;
  Seen seen;
  seen.values = host;
  CHECK(aclrtMemcpyAsync(device, bytes, host, bytes, ACL_MEMCPY_HOST_TO_DEVICE, stream));
  CHECK(aclnnSeluBackwardGetWorkspaceSize(tensor, tensor, tensor, &size, &executor));  // in place
  Workspace *workspace = new Workspace(size);
  CHECK(aclnnSeluBackward(workspace->get(), size, executor, stream));
  CHECK(aclrtMemcpyAsync(host, bytes, device, bytes, ACL_MEMCPY_DEVICE_TO_HOST, stream));
  CHECK(aclrtLaunchHostFunc(stream, Look, &seen));
  CHECK(aclrtSynchronizeStream(stream));
  delete workspace;
  const float expected = 2.0f * 1.0507009873554804934f;
  EXPECT(seen.calls == 1 && seen.first == expected);

  // Callbacks run in the thread that asked for the stream's reports.
  std::atomic<bool> stop{false};
  std::thread reports([&] {
    CHECK(aclrtSetCurrentContext(context));
    while (!stop) {
      int code = aclrtProcessReport(50);
      // Nothing arrived, or nobody has subscribed this thread yet.
      EXPECT(code == 0 || code == ACL_ERROR_RT_REPORT_TIMEOUT || code == ACL_ERROR_RT_THREAD_SUBSCRIBE);
    }
  });
  const uint64_t reporter = static_cast<uint64_t>(reports.native_handle());
  CHECK(aclrtSubscribeReport(reporter, stream));
  CHECK(aclrtLaunchCallback(Look, &seen, ACL_CALLBACK_BLOCK, stream));
  CHECK(aclrtSynchronizeStream(stream));
  EXPECT(seen.calls == 2);
  CHECK(aclrtUnSubscribeReport(reporter, stream));
  stop = true;
  reports.join();

  CHECK(aclDestroyTensor(tensor));
  CHECK(aclrtFree(device));
  CHECK(aclrtFreeHost(pinned));
  CHECK(aclrtDestroyStream(stream));
  CHECK(aclrtResetDevice(0));
  CHECK(aclFinalize());
  std::puts("pinned memory and callbacks: right");
  return 0;
}
