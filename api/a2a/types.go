package a2a

import "encoding/json"

// A State is the state of a task.
type State string

const (
	Submitted     State = "TASK_STATE_SUBMITTED"
	Working       State = "TASK_STATE_WORKING"
	Completed     State = "TASK_STATE_COMPLETED"
	Failed        State = "TASK_STATE_FAILED"
	Canceled      State = "TASK_STATE_CANCELED"
	InputRequired State = "TASK_STATE_INPUT_REQUIRED"
)

// states are all states that a task here can have.
var states = []State{Submitted, Working, Completed, Failed, Canceled, InputRequired}

// Terminal reports whether nothing more becomes of a task.
func (s State) Terminal() bool { return s == Completed || s == Failed || s == Canceled }

// Rests reports whether a caller who waits for the task gets its answer now.
func (s State) Rests() bool { return s.Terminal() || s == InputRequired }

// Roles of messages.
const (
	roleUser  = "ROLE_USER"
	roleAgent = "ROLE_AGENT"
)

type (
	// A Task is an issue as the protocol shows it.
	Task struct {
		ID        string         `json:"id"`
		Context   string         `json:"contextId"`
		Status    Status         `json:"status"`
		Artifacts []Artifact     `json:"artifacts,omitempty"`
		History   []Message      `json:"history,omitempty"`
		Metadata  map[string]any `json:"metadata,omitempty"`
	}
	// A Status is the state of a task, and what is said about it.
	Status struct {
		State   State    `json:"state"`
		Message *Message `json:"message,omitempty"`
		At      string   `json:"timestamp,omitempty"`
	}
	// A Message is what one side says.
	Message struct {
		ID         string          `json:"messageId"`
		Context    string          `json:"contextId,omitempty"`
		Task       string          `json:"taskId,omitempty"`
		Role       string          `json:"role"`
		Parts      []Part          `json:"parts"`
		Metadata   json.RawMessage `json:"metadata,omitempty"`
		References []string        `json:"referenceTaskIds,omitempty"`
	}
	// A Part is a piece of a message or an artifact: a text, bytes, a link or data. Kind and File are those of version
	// 0.3.
	Part struct {
		Text      *string         `json:"text,omitempty"`
		Raw       []byte          `json:"raw,omitempty"`
		URL       string          `json:"url,omitempty"`
		Data      json.RawMessage `json:"data,omitempty"`
		Filename  string          `json:"filename,omitempty"`
		MediaType string          `json:"mediaType,omitempty"`
		Metadata  json.RawMessage `json:"metadata,omitempty"`
		Kind      string          `json:"kind,omitempty"`
		File      *oldFile        `json:"file,omitempty"`

		file *attached // bytes that [inline] puts in
	}
	oldFile struct {
		Bytes []byte `json:"bytes,omitempty"`
		URI   string `json:"uri,omitempty"`
		Name  string `json:"name,omitempty"`
		Type  string `json:"mimeType,omitempty"`
	}
	// An Artifact is what the work on a task left.
	Artifact struct {
		ID          string `json:"artifactId"`
		Name        string `json:"name,omitempty"`
		Description string `json:"description,omitempty"`
		Parts       []Part `json:"parts"`
	}
	// A Hook is a push notification config.
	Hook struct {
		Tenant string    `json:"tenant,omitempty"`
		ID     string    `json:"id,omitempty"`
		Task   string    `json:"taskId,omitempty"`
		URL    string    `json:"url"`
		Token  string    `json:"token,omitempty"`
		Auth   *HookAuth `json:"authentication,omitempty"`
	}
	// HookAuth is how a notification authenticates itself.
	HookAuth struct {
		Scheme      string   `json:"scheme,omitempty"`
		Schemes     []string `json:"schemes,omitempty"` // version 0.3
		Credentials string   `json:"credentials,omitempty"`
	}
)

// Answers and events.
type (
	sendAnswer struct {
		Task *Task `json:"task"`
	}
	statusUpdate struct {
		Task    string `json:"taskId"`
		Context string `json:"contextId"`
		Status  Status `json:"status"`
	}
	artifactUpdate struct {
		Task     string   `json:"taskId"`
		Context  string   `json:"contextId"`
		Artifact Artifact `json:"artifact"`
		Last     bool     `json:"lastChunk,omitempty"`
	}
	event struct {
		Task     *Task           `json:"task,omitempty"`
		Status   *statusUpdate   `json:"statusUpdate,omitempty"`
		Artifact *artifactUpdate `json:"artifactUpdate,omitempty"`
	}
	taskPage struct {
		Tasks    []*Task `json:"tasks"`
		Next     string  `json:"nextPageToken"`
		PageSize int     `json:"pageSize"`
		Total    int     `json:"totalSize"`
	}
	hookPage struct {
		Hooks []Hook `json:"configs"`
		Next  string `json:"nextPageToken,omitempty"`
	}
	nothing struct{}
)

// Parameters.
type (
	sendParams struct {
		Tenant   string     `json:"tenant"`
		Message  *Message   `json:"message"`
		Config   sendConfig `json:"configuration"`
		Metadata struct {
			Agent string `json:"agent"`
		} `json:"metadata"`
	}
	sendConfig struct {
		Hook        *Hook    `json:"taskPushNotificationConfig"`
		OldHook     *Hook    `json:"pushNotificationConfig"` // version 0.3
		History     *int     `json:"historyLength"`
		Immediately bool     `json:"returnImmediately"`
		Blocking    *bool    `json:"blocking"` // version 0.3
		Modes       []string `json:"acceptedOutputModes"`
	}
	taskParams struct {
		Tenant  string `json:"tenant"`
		ID      string `json:"id"`
		History *int   `json:"historyLength"`
	}
	listParams struct {
		Tenant    string `json:"tenant"`
		Context   string `json:"contextId"`
		Status    State  `json:"status"`
		Size      *int   `json:"pageSize"`
		Token     string `json:"pageToken"`
		History   *int   `json:"historyLength"`
		After     string `json:"statusTimestampAfter"`
		Artifacts bool   `json:"includeArtifacts"`
	}
	hookParams struct {
		Hook
		Task   string `json:"taskId"`
		Old    *Hook  `json:"pushNotificationConfig"`   // version 0.3
		OldID  string `json:"pushNotificationConfigId"` // version 0.3
		OldRef string `json:"id"`
	}
)
