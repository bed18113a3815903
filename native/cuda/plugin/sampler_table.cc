#include <memory>

#include "cuda/plugin/call.h"
#include "cuda/plugin/kernels.h"
#include "cuda/plugin/sampler.h"

namespace gnnd::cuda {
namespace {

uint32_t SamplerCreate(gnnd_device* device, const gnnd_device_sampler_config* config,
                       gnnd_device_sampler** sampler, gnnd_device_error* error) {
  return On(device, error, [&](Failure* failure) {
    *sampler = nullptr;
    auto made = std::make_unique<gnnd_device_sampler>(*device, *config, failure);
    const int native = made->Create(failure);
    if (native != 0) return native;
    gnnd_device_sampler* const owned = made.release();
    device->Own(owned, [owned] { delete owned; });
    *sampler = owned;
    return 0;
  });
}

void SamplerDestroy(gnnd_device_sampler* sampler) {
  sampler->device().Disown(sampler);
  static_cast<void>(sampler->device().Use());
  delete sampler;
}

uint32_t SampleStart(gnnd_device_sampler* sampler, uint32_t epoch, uint32_t batch,
                     gnnd_device_error* error) {
  return On(&sampler->device(), error,
            [&](Failure* failure) { return sampler->Start(epoch, batch, failure); });
}

uint32_t SampleFinish(gnnd_device_sampler* sampler, void* slot, gnnd_device_sample_report* report,
                      gnnd_device_error* error) {
  return On(&sampler->device(), error, [&](Failure* failure) {
    return sampler->Finish(static_cast<std::byte*>(slot), report, failure);
  });
}

}  // namespace

void AddSamplers(gnnd_device_plugin* table) {
  table->sampler_create = SamplerCreate;
  table->sampler_destroy = SamplerDestroy;
  table->sample_start = SampleStart;
  table->sample_finish = SampleFinish;
}

}  // namespace gnnd::cuda
