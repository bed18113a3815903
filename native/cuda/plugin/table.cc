#include "cuda/plugin/call.h"
#include "cuda/plugin/kernels.h"

// The table that the shared object exports: each function enters its device, does one thing, and
// reports errors. No exception leaves it.

namespace gnnd::cuda {
namespace {

uint32_t System(gnnd_device_system* system, gnnd_device_error* error) {
  return Ask(error, [&](Runtime& runtime, Failure* failure) {
    *system = {};
    failure->what = "looking for devices";
    system->driver_version = runtime.DriverVersion();
    system->runtime_version = runtime.RuntimeVersion();
    const int native = runtime.Count(&system->devices);
    if (native != 0) {
      system->devices = 0;
      return native;
    }
    const std::string problem = runtime.MonitorProblem();
    system->has_monitor = problem.empty() ? 1 : 0;
    Put(system->monitor, problem);
    return 0;
  });
}

uint32_t Info(uint32_t index, gnnd_device_info* info, gnnd_device_error* error) {
  return Ask(error, [&](Runtime& runtime, Failure* failure) {
    failure->what = "asking what device " + std::to_string(index) + " is";
    *info = {};
    return runtime.Info(index, info);
  });
}

uint32_t Link(uint32_t from, uint32_t to, gnnd_device_link* link, gnnd_device_error* error) {
  return Ask(error, [&](Runtime& runtime, Failure* failure) {
    failure->what = "asking how device " + std::to_string(from) + " reaches " + std::to_string(to);
    *link = {};
    return runtime.Link(from, to, link);
  });
}

uint32_t LinkRate(uint32_t from, uint32_t to, uint64_t* bytes_per_second,
                  gnnd_device_error* error) {
  return Ask(error, [&](Runtime& runtime, Failure* failure) {
    failure->what = "measuring what device " + std::to_string(from) + " reads of " +
                    (to == GNND_HOST_MEMORY ? "the host" : "device " + std::to_string(to));
    *bytes_per_second = 0;
    return runtime.LinkRate(from, to, bytes_per_second);
  });
}

uint32_t Processes(uint32_t index, gnnd_device_process* processes, uint32_t capacity,
                   uint32_t* count, gnnd_device_error* error) {
  return Ask(error, [&](Runtime& runtime, Failure* failure) {
    failure->what = "asking who uses device " + std::to_string(index);
    *count = 0;
    const std::string problem = runtime.MonitorProblem();
    if (!problem.empty()) {
      failure->said = problem;
      return kNoMonitor;
    }
    return runtime.Processes(index, processes, capacity, count);
  });
}

uint32_t Instances(uint32_t index, gnnd_device_instance* instances, uint32_t capacity,
                   uint32_t* count, gnnd_device_error* error) {
  return Ask(error, [&](Runtime& runtime, Failure* failure) {
    failure->what = "asking for the MIG instances of device " + std::to_string(index);
    *count = 0;
    const std::string problem = runtime.MonitorProblem();
    if (!problem.empty()) {
      failure->said = problem;
      return kNoMonitor;
    }
    return runtime.Instances(index, instances, capacity, count);
  });
}

uint32_t Open(const gnnd_device_config* config, gnnd_device** device, gnnd_device_error* error) {
  return Ask(error, [&](Runtime& runtime, Failure* failure) {
    *device = nullptr;
    if (config->abi_version != GNND_DEVICE_ABI_VERSION) {
      failure->what = "opening a device for version " + std::to_string(config->abi_version) +
                      " of gnnd/device_plugin.h, this plug-in has version " +
                      std::to_string(GNND_DEVICE_ABI_VERSION);
      return kBadArgument;
    }
    auto* const made = new gnnd_device(runtime, *config);
    const int native = made->Open(failure);
    if (native == 0) *device = made;
    if (native != 0) delete made;
    return native;
  });
}

void Close(gnnd_device* device) { delete device; }

uint32_t Memory(gnnd_device* device, gnnd_device_memory* memory, gnnd_device_error* error) {
  return On(device, error, [&](Failure* f) { return device->Memory(memory, f); });
}

uint32_t Allocate(gnnd_device* device, uint64_t bytes, uint32_t purpose, void** memory,
                  gnnd_device_error* error) {
  return On(device, error, [&](Failure* f) { return device->Allocate(bytes, purpose, memory, f); });
}

uint32_t AllocateShared(gnnd_device* device, uint64_t bytes, uint32_t purpose, void** memory,
                        gnnd_device_handle* handle, gnnd_device_error* error) {
  return On(device, error,
            [&](Failure* f) { return device->AllocateShared(bytes, purpose, memory, handle, f); });
}

uint32_t OpenShared(gnnd_device* device, const gnnd_device_handle* handle, void** memory,
                    gnnd_device_error* error) {
  return On(device, error, [&](Failure* f) { return device->OpenShared(*handle, memory, f); });
}

void CloseShared(gnnd_device* device, void* memory) { device->CloseShared(memory); }

void Release(gnnd_device* device, void* memory) { device->Release(memory); }

uint32_t RegisterHost(gnnd_device* device, void* memory, uint64_t bytes, void** seen,
                      gnnd_device_error* error) {
  return On(device, error, [&](Failure* f) { return device->Register(memory, bytes, seen, f); });
}

uint32_t UnregisterHost(gnnd_device* device, void* memory, gnnd_device_error* error) {
  return On(device, error, [&](Failure* f) { return device->Unregister(memory, f); });
}

uint32_t StreamCreate(gnnd_device* device, uint32_t priority, gnnd_device_stream** stream,
                      gnnd_device_error* error) {
  return On(device, error, [&](Failure* f) { return device->CreateStream(priority, stream, f); });
}

uint32_t StreamAdopt(gnnd_device* device, void* native_stream, gnnd_device_stream** stream,
                     gnnd_device_error* error) {
  return On(device, error, [&](Failure*) {
    *stream = device->Adopt(native_stream);
    return 0;
  });
}

void StreamDestroy(gnnd_device_stream* stream) { stream->device->Destroy(stream); }

void* StreamNative(gnnd_device_stream* stream) { return stream->stream; }

uint32_t StreamWait(gnnd_device_stream* stream, gnnd_device_event* event,
                    gnnd_device_error* error) {
  return On(stream->device, error, [&](Failure* f) {
    f->what = "making a stream wait for an event";
    return stream->device->runtime().Wait(stream->stream, event->event);
  });
}

uint32_t StreamSynchronize(gnnd_device_stream* stream, gnnd_device_error* error) {
  return On(stream->device, error, [&](Failure* f) {
    f->what = "waiting for a stream";
    return stream->device->runtime().Synchronize(stream->stream);
  });
}

uint32_t EventCreate(gnnd_device* device, uint32_t timed, gnnd_device_event** event,
                     gnnd_device_error* error) {
  return On(device, error, [&](Failure* f) { return device->CreateEvent(timed != 0, event, f); });
}

void EventDestroy(gnnd_device_event* event) { event->device->Destroy(event); }

uint32_t EventRecord(gnnd_device_event* event, gnnd_device_stream* stream,
                     gnnd_device_error* error) {
  return On(event->device, error, [&](Failure* f) {
    f->what = "recording an event";
    return event->device->runtime().Record(event->event, stream->stream);
  });
}

uint32_t EventQuery(gnnd_device_event* event, gnnd_device_error* error) {
  return On(event->device, error, [&](Failure* f) {
    f->what = "asking whether an event has happened";
    return event->device->runtime().Query(event->event);
  });
}

uint32_t EventSynchronize(gnnd_device_event* event, gnnd_device_error* error) {
  return On(event->device, error, [&](Failure* f) {
    f->what = "waiting for an event";
    return event->device->runtime().SynchronizeEvent(event->event);
  });
}

uint32_t EventElapsed(gnnd_device_event* begin, gnnd_device_event* end, uint64_t* ns,
                      gnnd_device_error* error) {
  return On(begin->device, error, [&](Failure* f) {
    f->what = "asking for the time between two events";
    *ns = 0;
    if (!begin->is_timed || !end->is_timed) return kBadArgument;
    return begin->device->runtime().Elapsed(begin->event, end->event, ns);
  });
}

uint32_t Copy(gnnd_device_stream* stream, void* to, const void* from, uint64_t bytes,
              uint32_t direction, gnnd_device_error* error) {
  return On(stream->device, error, [&](Failure* f) {
    return stream->device->Copy(stream->stream, to, from, bytes, direction, f);
  });
}

uint32_t CopyStaged(gnnd_device_stream* stream, void* to, const void* from, uint64_t bytes,
                    uint32_t direction, gnnd_device_error* error) {
  return On(stream->device, error, [&](Failure* f) {
    return stream->device->CopyStaged(stream->stream, to, from, bytes, direction, f);
  });
}

uint32_t Fill(gnnd_device_stream* stream, void* to, uint8_t byte, uint64_t bytes,
              gnnd_device_error* error) {
  return On(stream->device, error, [&](Failure* f) {
    f->what = "filling " + std::to_string(bytes) + " bytes";
    return bytes == 0 ? 0 : stream->device->runtime().Fill(stream->stream, to, byte, bytes);
  });
}

// A failure here is the other library's to report, by foreign_failed.
uint32_t BeginForeign(gnnd_device_stream* stream, gnnd_device_error* error) {
  return Ask(error, [&](Runtime& runtime, Failure* f) {
    f->what = "work of another library";
    return runtime.BeginForeign(stream->stream);
  });
}

uint32_t ForeignFailed(gnnd_device* device, int32_t native_code, const char* words,
                       gnnd_device_error* error) {
  Failure failure;
  failure.what = words;
  // A caller that passes no failure's number breaks a rule of the interface.
  const int native = native_code > 0 ? native_code : kBadArgument;
  return TellOf(device->runtime(), &failure, device->Leave(native, failure), error);
}

gnnd_device_plugin MakeTable() {
  gnnd_device_plugin table{};
  table.abi_version = GNND_DEVICE_ABI_VERSION;
  table.table_bytes = sizeof table;
  table.name = TheRuntime().Name();
  table.build = TheRuntime().Build();
  table.system = System;
  table.info = Info;
  table.link = Link;
  table.link_rate = LinkRate;
  table.processes = Processes;
  table.instances = Instances;
  table.open = Open;
  table.close = Close;
  table.memory = Memory;
  table.allocate = Allocate;
  table.release = Release;
  table.allocate_shared = AllocateShared;
  table.open_shared = OpenShared;
  table.close_shared = CloseShared;
  table.register_host = RegisterHost;
  table.unregister_host = UnregisterHost;
  table.stream_create = StreamCreate;
  table.stream_adopt = StreamAdopt;
  table.stream_destroy = StreamDestroy;
  table.stream_native = StreamNative;
  table.stream_wait = StreamWait;
  table.stream_synchronize = StreamSynchronize;
  table.event_create = EventCreate;
  table.event_destroy = EventDestroy;
  table.event_record = EventRecord;
  table.event_query = EventQuery;
  table.event_synchronize = EventSynchronize;
  table.event_elapsed = EventElapsed;
  table.copy = Copy;
  table.copy_staged = CopyStaged;
  table.fill = Fill;
  table.begin_foreign = BeginForeign;
  table.foreign_failed = ForeignFailed;
  AddSamplers(&table);
  AddFeatures(&table);
  AddTraining(&table);
  AddAttention(&table);
  AddLayerEnds(&table);
  AddRowModels(&table);
  return table;
}

}  // namespace
}  // namespace gnnd::cuda

extern "C" GNND_DEVICE_EXPORT const gnnd_device_plugin* gnnd_device_plugin_get(void) {
  static const gnnd_device_plugin table = gnnd::cuda::MakeTable();
  return &table;
}
