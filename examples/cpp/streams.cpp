// Two streams and events: the second stream waits for the first one's result, and the host measures nothing but the end.
#include <memory>

#include "aclnnop/aclnn_selu_backward.h"
#include "common.h"

namespace {

// Both phases; the workspace that comes back must live until the stream has been synchronised.
std::unique_ptr<Workspace> Backward(const aclTensor *grad, const aclTensor *result, aclTensor *out, aclrtStream stream) {
  uint64_t size = 0;
  aclOpExecutor *executor = nullptr;
  CHECK(aclnnSeluBackwardGetWorkspaceSize(grad, result, out, &size, &executor));
  std::unique_ptr<Workspace> workspace(new Workspace(size));
  CHECK(aclnnSeluBackward(workspace->get(), size, executor, stream));
  return workspace;
}

}  // namespace

int main() {
  CHECK(aclInit(nullptr));
  CHECK(aclrtSetDevice(0));
  aclrtStream producer = nullptr, consumer = nullptr;
  CHECK(aclrtCreateStream(&producer));
  CHECK(aclrtCreateStream(&consumer));
  aclrtEvent begin = nullptr, ready = nullptr;
  CHECK(aclrtCreateEventWithFlag(&begin, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE));
  CHECK(aclrtCreateEventWithFlag(&ready, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE));
  {
    const std::vector<int64_t> shape = {1024};
    DeviceBuffer<float> ones(std::vector<float>(1024, 1.0f)), middle(std::vector<float>(1024, 0.0f));
    DeviceBuffer<float> last(std::vector<float>(1024, 0.0f));
    aclTensor *grad = FloatTensor(shape, ones.get()), *between = FloatTensor(shape, middle.get());
    aclTensor *out = FloatTensor(shape, last.get());

    CHECK(aclrtRecordEvent(begin, producer));
    auto first = Backward(grad, grad, between, producer);  // 1 * scale
    CHECK(aclrtRecordEvent(ready, producer));
    CHECK(aclrtStreamWaitEvent(consumer, ready));  // without this line the next launch may read too early
    auto second = Backward(between, grad, out, consumer);  // scale * scale
    CHECK(aclrtSynchronizeStream(consumer));

    const float scale = 1.0507009873554804934f;
    for (float value : last.Read()) EXPECT(value == scale * scale);
    float ms = -1.0f;
    CHECK(aclrtEventElapsedTime(&ms, begin, ready));
    EXPECT(ms >= 0.0f);
    aclrtEventRecordedStatus status;
    CHECK(aclrtQueryEventStatus(ready, &status));
    EXPECT(status == ACL_EVENT_RECORDED_STATUS_COMPLETE);
    for (aclTensor *tensor : {grad, between, out}) CHECK(aclDestroyTensor(tensor));
  }
  CHECK(aclrtDestroyEvent(begin));
  CHECK(aclrtDestroyEvent(ready));
  CHECK(aclrtDestroyStream(producer));
  CHECK(aclrtDestroyStream(consumer));
  CHECK(aclrtResetDevice(0));
  CHECK(aclFinalize());
  std::puts("two streams and events: right");
  return 0;
}
