"""The epochs of a job for other programs, without these and without a daemon."""

import contextlib
import json
import math
import sys
import tempfile
import unittest
import unittest.mock

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from gnnd import history, trackers, watch
from gnnd.v1 import epoch_report_pb2, job_pb2


def report(epoch, **values):
    return epoch_report_pb2.EpochReport(epoch=epoch, **values)


class Histories(unittest.TestCase):
    records = [
        {"epoch": epoch, "loss": 0.5**epoch, "val_accuracy": math.nan if epoch == 1 else 0.25}
        for epoch in range(4)
    ]

    def job(self):
        """Its watch begins with the last two of four epochs, as that of a long job would."""
        done = job_pb2.Job(state=job_pb2.JOB_STATE_SUCCEEDED, attempts=[job_pb2.Attempt(number=1)])
        done.result.parameters_sha256, done.result.best_epoch = "ab", 2
        job = unittest.mock.Mock(id="it", message=done, task="CLASSIFICATION")
        job.spec = {"model": {"type": "GCN"}}
        updates = [
            watch.Update(done, [report(each, loss=0.5**each) for each in told], 1)
            for told in ((2,), (), (3,))
        ]
        job.updates.side_effect = lambda: iter(updates)
        reports = [report(n, loss=0.5**n) for n in range(4)]
        job.records.return_value = [history.record_of(each, job.task) for each in reports]
        return job

    def test_are_files(self):
        with tempfile.TemporaryDirectory() as folder:
            lines = history.write(self.records, f"{folder}/a.jsonl", "a").read_text().splitlines()
            self.assertEqual(json.loads(lines[1]), {"epoch": 1, "loss": 0.5, "val_accuracy": None})
            table = history.write(self.records, f"{folder}/a.csv", "a").read_text().splitlines()
            self.assertEqual(table[:2], ["epoch,loss,val_accuracy", "0,1.0,0.25"])
            self.assertEqual(len(table), 5)
            self.assertEqual(history.write([], f"{folder}/b.csv", "a").read_text(), "epoch\n")
            with self.assertRaisesRegex(ValueError, "TensorBoard"):
                history.write(self.records, f"{folder}/a.xls", "a")
            events = history.write(self.records, f"{folder}/runs", "a")
            self.assertTrue(events.name.startswith("events.out.tfevents."))
            self.assertEqual(
                self.scalars(events.read_bytes()),
                {
                    *((0, "loss", 1.0), (0, "val_accuracy", 0.25), (1, "loss", 0.5)),
                    *((2, "loss", 0.25), (2, "val_accuracy", 0.25)),
                    *((3, "loss", 0.125), (3, "val_accuracy", 0.25)),
                },
            )

    def scalars(self, data):
        """Steps, tags and values of an event file, read by the descriptors of its messages."""
        file = descriptor_pb2.FileDescriptorProto(name="event.proto", syntax="proto3")
        kinds = {"d": 1, "f": 2, "i": 3, "s": 9}
        for name, fields in {
            "Value": [("tag", 1, "s"), ("simple_value", 2, "f")],
            "Summary": [("value", 1, "Value")],
            "Event": [("wall_time", 1, "d"), ("step", 2, "i"), ("summary", 5, "Summary")],
        }.items():
            message = file.message_type.add(name=name)
            for field, number, kind in fields:
                made = message.field.add(name=field, number=number, label=1)
                made.type = kinds.get(kind, 11)
                if kind not in kinds:
                    made.type_name, made.label = f".{kind}", 3 if kind == "Value" else 1
        pool = descriptor_pool.DescriptorPool()
        pool.Add(file)
        event_class = message_factory.GetMessageClass(pool.FindMessageTypeByName("Event"))
        found = set()
        while data:
            size = int.from_bytes(data[:8], "little")
            self.assertEqual(history._masked_crc(data[:8]), data[8:12])
            event = event_class.FromString(data[12 : 12 + size])
            self.assertEqual(history._masked_crc(data[12 : 12 + size]), data[12 + size : 16 + size])
            found |= {(event.step, v.tag, v.simple_value) for v in event.summary.value}
            data = data[16 + size :]
        return found

    def test_have_accuracies_of_classes_alone(self):
        told = report(1, train_accuracy=0.5, val_metrics=[{"name": "mae", "value": 2}])
        rest = {"epoch", "loss", "seconds", "batches", "steps", "retries", "version"}
        self.assertEqual(set(history.record_of(told, "REGRESSION")), rest | {"val_mae"})
        self.assertEqual(set(history.record_of(report(0), "MULTI_LABEL")), rest)
        record = history.record_of(report(0, train_accuracy=0.5), "CLASSIFICATION")
        self.assertEqual(set(record), rest | {"train_accuracy", "val_accuracy"})
        self.assertTrue(math.isnan(record["val_accuracy"]))

    def test_have_the_checksum_of_the_castagnoli_polynomial(self):
        crc = 0xE3069283  # Of these digits, in RFC 3720's form.
        masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
        self.assertEqual(history._masked_crc(b"123456789"), masked.to_bytes(4, "little"))

    def test_are_followed_from_the_first_epoch_each_once(self):
        seen = []
        trackers.follow(self.job(), lambda record: seen.append(record["epoch"]))
        self.assertEqual(seen, [0, 1, 2, 3])

    def test_go_to_wandb(self):
        wandb = unittest.mock.MagicMock()
        with unittest.mock.patch.dict(sys.modules, wandb=wandb):
            run = trackers.to_wandb(self.job(), project="graphs", config={"mine": 1})
        config = {"model": {"type": "GCN"}, "mine": 1}
        wandb.init.assert_called_once_with(name="it", config=config, project="graphs")
        self.assertEqual([call.kwargs["step"] for call in run.log.mock_calls], [0, 1, 2, 3])
        self.assertEqual(run.log.mock_calls[2].args[0]["loss"], 0.25)
        self.assertNotIn("val_accuracy", run.log.mock_calls[2].args[0])
        self.assertEqual(run.summary.update.call_args.args[0]["parameters_sha256"], "ab")
        run.finish.assert_called_once_with(exit_code=0)

    def test_go_to_mlflow(self):
        mlflow = unittest.mock.MagicMock()
        with unittest.mock.patch.dict(sys.modules, mlflow=mlflow):
            trackers.to_mlflow(self.job())
        mlflow.start_run.assert_called_once_with(run_name="it")
        mlflow.log_params.assert_called_once_with({"model.type": "GCN"})
        steps = [call.kwargs["step"] for call in mlflow.log_metrics.mock_calls]
        self.assertEqual(steps, [0, 1, 2, 3])
        mlflow.set_tag.assert_called_once_with("parameters_sha256", "ab")
        mlflow.end_run.assert_called_once_with("FINISHED")

    def test_of_what_breaks_off_are_no_success_there(self):
        """Of a job that somebody cancelled, and of a follower that was interrupted."""
        ends = []
        for error in (None, KeyboardInterrupt):
            job = self.job()
            job.message.state = job_pb2.JOB_STATE_CANCELLED
            job.message.result.Clear()
            job.updates.side_effect = error or job.updates.side_effect
            with unittest.mock.patch.dict(
                sys.modules, mlflow=unittest.mock.MagicMock(), wandb=unittest.mock.MagicMock()
            ):
                for track in (trackers.to_mlflow, trackers.to_wandb):
                    with contextlib.suppress(KeyboardInterrupt):
                        track(job)
                ends.append(sys.modules["mlflow"].end_run.call_args)
                ends.append(sys.modules["wandb"].init.return_value.finish.call_args)
        call = unittest.mock.call
        self.assertEqual(ends, [call("KILLED"), call(exit_code=1)] * 2)


if __name__ == "__main__":
    unittest.main()
