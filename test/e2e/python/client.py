"""A client with generated stubs: submits, watches, cancels, and reads what was refused.

usage: client.py ADDRESS DATASET          prints one JSON object of what it saw
"""

import json
import sys
import uuid

import grpc
from gnnd.v1 import (
    job_pb2,
    job_service_pb2,
    job_service_pb2_grpc,
    job_spec_pb2,
    model_pb2,
    resources_pb2,
    sampling_pb2,
    training_pb2,
)
from google.rpc import error_details_pb2
from grpc_status import rpc_status

CALL_SECONDS = 30
WATCH_SECONDS = 90


def spec(dataset, epochs):
    return job_spec_pb2.JobSpec(
        dataset=dataset,
        model=model_pb2.ModelSpec(type=model_pb2.MODEL_TYPE_GRAPHSAGE, hidden_dim=16),
        sampling=sampling_pb2.SamplingSpec(fanouts=[5, 5]),
        training=training_pb2.TrainingSpec(epochs=epochs, batch_size=32),
        resources=resources_pb2.ResourcesSpec(devices=2),
    )


def submit(jobs, job_id, job_spec):
    request = job_service_pb2.CreateJobRequest(
        job_id=job_id, spec=job_spec, request_id=str(uuid.uuid4())
    )
    return jobs.CreateJob(request, timeout=CALL_SECONDS)


def watch(jobs, name):
    """All events until the job is terminal; the server ends the stream."""
    request = job_service_pb2.WatchJobRequest(name=name, until_terminal=True)
    return list(jobs.WatchJob(request, timeout=WATCH_SECONDS))


def watch_to_the_end(jobs, dataset):
    job = submit(jobs, "python-watched", spec(dataset, epochs=3))
    events = watch(jobs, job.name)
    changes = [event for event in events if event.type != job_service_pb2.WATCH_TYPE_PROGRESS]
    last = events[-1].job
    return {
        "name": job.name,
        "first": job_service_pb2.WatchType.Name(events[0].type),
        "states": [job_pb2.JobState.Name(e.job.state) for e in changes if e.HasField("job")],
        "revisions": [event.revision for event in changes],
        "epochs": sum(len(event.epochs) for event in events),
        "sha256": last.result.parameters_sha256,
    }


def cancel_in_mid_run(jobs, dataset):
    job = submit(jobs, "python-cancelled", spec(dataset, epochs=100_000))
    request = job_service_pb2.WatchJobRequest(name=job.name)
    for event in jobs.WatchJob(request, timeout=WATCH_SECONDS):
        if event.job.state == job_pb2.JOB_STATE_RUNNING:
            break
    answered = jobs.CancelJob(
        job_service_pb2.CancelJobRequest(name=job.name), timeout=CALL_SECONDS
    )
    last = watch(jobs, job.name)[-1].job
    return {
        "intent": job_pb2.JobIntent.Name(answered.intent),
        "state": job_pb2.JobState.Name(last.state),
        "reason": last.reason,
    }


def refusal(jobs, dataset):
    bad = spec(dataset, epochs=0)
    bad.model.dropout = 1.5
    bad.sampling.fanouts[1] = 0
    try:
        submit(jobs, "python-refused", bad)
    except grpc.RpcError as error:
        return details(error)
    raise AssertionError("a bad spec was accepted")


def details(error):
    """What rides along with the code: a reason for programs, and every field that is wrong."""
    seen = {"code": error.code().name, "message": error.details(), "fields": {}}
    for detail in rpc_status.from_call(error).details:
        info = error_details_pb2.ErrorInfo()
        bad_request = error_details_pb2.BadRequest()
        if detail.Unpack(info):
            seen["domain"], seen["reason"] = info.domain, info.reason
        elif detail.Unpack(bad_request):
            seen["fields"] = {v.field: v.description for v in bad_request.field_violations}
    return seen


def main(address, dataset):
    with grpc.insecure_channel(address) as channel:
        jobs = job_service_pb2_grpc.JobServiceStub(channel)
        seen = {
            "watched": watch_to_the_end(jobs, dataset),
            "cancelled": cancel_in_mid_run(jobs, dataset),
            "refused": refusal(jobs, dataset),
        }
    print(json.dumps(seen))


if __name__ == "__main__":
    main(*sys.argv[1:])
