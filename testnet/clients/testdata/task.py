# Finds an agent by the official client of A2A, gives it tasks over both bindings, and gets what it leaves.
import asyncio
import os
import sys
import uuid

import httpx
from a2a.client import ClientConfig, ClientFactory
from a2a.client.card_resolver import A2ACardResolver
from a2a.types import a2a_pb2 as t
from a2a.utils.errors import TaskNotFoundError, UnsupportedOperationError

url, other, key, hook = os.environ["SELVAGE_API_URL"], sys.argv[1], os.environ["SELVAGE_API_KEY"], sys.argv[2]


def say(text: str, **more: object) -> t.SendMessageRequest:
    part = [t.Part(text=text), t.Part(raw=b"seven", filename="note.txt", media_type="text/plain")]
    return t.SendMessageRequest(message=t.Message(message_id=str(uuid.uuid4()), role=t.ROLE_USER, parts=part, **more))


def state(s: int) -> str:
    return t.TaskState.Name(s).removeprefix("TASK_STATE_").lower()


async def main() -> None:
    async with httpx.AsyncClient(headers={"Authorization": "Bearer " + key}, timeout=120) as http:
        mesh = await A2ACardResolver(http, url).get_agent_card()
        ada = next(s for s in mesh.skills if s.name == "Ada")
        print("the mesh has", ada.name, "of", ada.tags[0])
        agent = await A2ACardResolver(http, url + "/a2a/" + ada.id).get_agent_card()
        print("the card is of", agent.name, "and streams" if agent.capabilities.streaming else "")

        # Streaming over JSON-RPC.
        client = ClientFactory(ClientConfig(httpx_client=http)).create(agent)
        request = say("Weld the arm", context_id="arms")
        request.configuration.task_push_notification_config.CopyFrom(t.TaskPushNotificationConfig(url=hook, token="told",
            authentication=t.AuthenticationInfo(scheme="Bearer", credentials="secret")))
        seen, names, task, result = [], set(), "", ""
        async for e in client.send_message(request):
            if e.HasField("task"):
                task = e.task.id
                assert e.task.context_id == "arms"
            if e.HasField("status_update"):
                seen.append(state(e.status_update.status.state))
            if e.HasField("artifact_update"):
                names.add(e.artifact_update.artifact.name)
                result += e.artifact_update.artifact.parts[0].text
        print("streamed", "…", seen[-1], *sorted(names), "says who it is" if "I am Ada" in result else result)

        # Without streaming, over the other binding, at another node; the only company's CEO is meant.
        root = await A2ACardResolver(http, other).get_agent_card()
        rest = ClientFactory(ClientConfig(httpx_client=http, streaming=False, supported_protocol_bindings=["HTTP+JSON"])).create(root)
        async for e in rest.send_message(say("Paint the arm", context_id="arms")):
            painted = e.task
        print("waited", state(painted.status.state), *[a.name for a in painted.artifacts])
        got = await rest.get_task(t.GetTaskRequest(id=task))
        print("read", state(got.status.state), len(got.history) >= 2, got.artifacts[0].parts[0].media_type)
        page = await rest.list_tasks(t.ListTasksRequest(context_id="arms", page_size=1, status=t.TASK_STATE_COMPLETED))
        more = await rest.list_tasks(t.ListTasksRequest(context_id="arms", page_size=1, page_token=page.next_page_token))
        print("listed", page.total_size, {page.tasks[0].id, more.tasks[0].id} == {task, painted.id})

        # What is over does not go on, and what is not there is not found.
        for name, call in {"go on": client.send_message(say("More", task_id=task)), "subscribe": client.subscribe(t.SubscribeToTaskRequest(id=task))}.items():
            try:
                async for _ in call:
                    print(name, "was taken")
            except UnsupportedOperationError:
                print(name, "is refused")
        try:
            await client.get_task(t.GetTaskRequest(id=str(uuid.uuid4())))
        except TaskNotFoundError:
            print("not found")

        # A task of an agent that is paused waits; its webhooks are kept, and it can be canceled.
        request = say("Wait")
        request.configuration.return_immediately = True
        request.metadata["agent"] = "Idle"
        async for e in rest.send_message(request):
            waits = e.task
        mine = hook + "/mine"  # it may be told of this task before it is deleted
        c = await rest.create_task_push_notification_config(t.TaskPushNotificationConfig(task_id=waits.id, id="mine", url=mine, token="x"))
        all_of = await client.list_task_push_notification_configs(t.ListTaskPushNotificationConfigsRequest(task_id=waits.id))
        one = await client.get_task_push_notification_config(t.GetTaskPushNotificationConfigRequest(task_id=waits.id, id="mine"))
        await rest.delete_task_push_notification_config(t.DeleteTaskPushNotificationConfigRequest(task_id=waits.id, id="mine"))
        print("webhook", c.id, len(all_of.configs), one.url == mine, repr(one.token))
        over = await client.cancel_task(t.CancelTaskRequest(id=waits.id))
        print(state(waits.status.state), "then", state(over.status.state))


asyncio.run(main())
