package a2a

import (
	"encoding/json"
	"strings"
)

// inOld returns a result or an event in the form of version 0.3.
func inOld(v any, s State) any {
	switch v := v.(type) {
	case sendAnswer:
		return oldTask(*v.Task)
	case *Task:
		return oldTask(*v)
	case event:
		switch {
		case v.Task != nil:
			return oldTask(*v.Task)
		case v.Status != nil:
			return map[string]any{"kind": "status-update", "taskId": v.Status.Task, "contextId": v.Status.Context,
				"status": oldStatus(v.Status.Status), "final": s.Rests()}
		default:
			return map[string]any{"kind": "artifact-update", "taskId": v.Artifact.Task, "contextId": v.Artifact.Context,
				"artifact": oldArtifact(v.Artifact.Artifact), "lastChunk": true}
		}
	case taskPage:
		tasks := []any{}
		for _, t := range v.Tasks {
			tasks = append(tasks, oldTask(*t))
		}
		return map[string]any{"tasks": tasks, "nextPageToken": v.Next, "pageSize": v.PageSize, "totalSize": v.Total}
	case Hook:
		return map[string]any{"taskId": v.Task, "pushNotificationConfig": oldHook(v)}
	case hookPage:
		all := []any{}
		for _, h := range v.Hooks {
			all = append(all, map[string]any{"taskId": h.Task, "pushNotificationConfig": oldHook(h)})
		}
		return all
	case nothing:
		return json.RawMessage("null")
	}
	return v
}

// oldState returns the name of a state in version 0.3: "input-required".
func oldState(s State) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(string(s), "TASK_STATE_")), "_", "-")
}

func oldStatus(s Status) map[string]any {
	out := map[string]any{"state": oldState(s.State), "timestamp": s.At}
	if s.Message != nil {
		out["message"] = oldMessage(*s.Message)
	}
	return out
}

func oldMessage(m Message) map[string]any {
	role := "user"
	if m.Role == roleAgent {
		role = "agent"
	}
	return map[string]any{"kind": "message", "messageId": m.ID, "contextId": m.Context, "taskId": m.Task, "role": role,
		"parts": oldParts(m.Parts)}
}

func oldParts(parts []Part) []any {
	out := []any{}
	for _, p := range parts {
		switch {
		case p.Text != nil:
			out = append(out, map[string]any{"kind": "text", "text": *p.Text})
		case len(p.Data) > 0:
			out = append(out, map[string]any{"kind": "data", "data": p.Data})
		default:
			out = append(out, map[string]any{"kind": "file", "file": oldFile{Bytes: p.Raw, URI: p.URL, Name: p.Filename,
				Type: p.MediaType}})
		}
	}
	return out
}

func oldArtifact(a Artifact) map[string]any {
	return map[string]any{"artifactId": a.ID, "name": a.Name, "description": a.Description, "parts": oldParts(a.Parts)}
}

func oldTask(t Task) map[string]any {
	artifacts, history := []any{}, []any{}
	for _, a := range t.Artifacts {
		artifacts = append(artifacts, oldArtifact(a))
	}
	for _, m := range t.History {
		history = append(history, oldMessage(m))
	}
	return map[string]any{"kind": "task", "id": t.ID, "contextId": t.Context, "status": oldStatus(t.Status),
		"artifacts": artifacts, "history": history, "metadata": t.Metadata}
}

func oldHook(h Hook) map[string]any {
	out := map[string]any{"id": h.ID, "url": h.URL}
	if h.Auth != nil {
		out["authentication"] = map[string]any{"schemes": []string{h.Auth.Scheme}}
	}
	return out
}
