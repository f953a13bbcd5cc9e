package a2a

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/selvage-mesh/selvage/api"
)

// The rows of the bindings: who may call them, and for how long.
var (
	rpcRow = api.Route{Method: "POST", Path: Root, Tag: "a2a", Once: true, NoTool: true, MaxBody: maxBody,
		Timeout: maxWait + api.RequestTimeout, Handle: answerRPC}
	restRow = api.Route{Method: "POST", Path: Root + "/", Tag: "a2a", Once: true, NoTool: true, MaxBody: maxBody,
		Timeout: maxWait + api.RequestTimeout, Handle: answerREST}
)

// serve finds out which binding a request is for, and which agent its path names.
//
//	POST /a2a[/AGENT]                JSON-RPC
//	…    /a2a[/AGENT]/message:send   HTTP+JSON, also message:stream, tasks…, extendedAgentCard
func serve(s *api.Server, w http.ResponseWriter, r *http.Request) {
	rest := strings.Trim(strings.TrimPrefix(r.URL.Path, Root), "/")
	agent, rest := cutAgent(rest)
	r.SetPathValue("agent", agent)
	r.SetPathValue("rest", rest)
	switch {
	case rest != "":
		s.Serve(&restRow, w, r)
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		_ = api.WriteJSON(w, http.StatusMethodNotAllowed,
			api.ErrorBody{Error: "POST a JSON-RPC request of the A2A protocol here; the card is under " +
				CardPath}) // a constant
	default:
		s.Serve(&rpcRow, w, r)
	}
}

// cutAgent divides a path below Root into the agent and the operation.
func cutAgent(path string) (agent, rest string) {
	head, tail, _ := strings.Cut(path, "/")
	switch head {
	case "", "message:send", "message:stream", "tasks", "extendedAgentCard":
		return "", path
	}
	return head, tail
}

// checkVersion refuses requests of another version. None is 1.0, as most clients of a first try send none.
func checkVersion(rc *api.Request) error {
	v := rc.HTTP.Header.Get("A2A-Version")
	if v == "" || v == "1" || strings.HasPrefix(v, "1.") || v == "0.3" || strings.HasPrefix(v, "0.3.") {
		return nil
	}
	return badVersion.as("A2A-Version %s: this node speaks %s", api.Cut(v, 20), Version)
}

type (
	rpcRequest struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  string          `json:"method"`
		Params  json.RawMessage `json:"params"`
	}
	rpcAnswer struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  any             `json:"result,omitempty"`
		Error   *rpcError       `json:"error,omitempty"`
	}
)

// answerRPC answers a request of JSON-RPC 2.0.
func answerRPC(rc *api.Request) (api.Response, error) {
	b, err := rc.RawBody()
	if err != nil {
		return api.Response{}, err
	}
	id := json.RawMessage("null")
	fail := func(err error) (api.Response, error) {
		f := faultOf(err)
		if f == nil {
			return api.Response{}, err
		}
		return api.OK(rpcAnswer{Version: "2.0", ID: id, Error: f.rpc()}), nil
	}
	var in rpcRequest
	if !json.Valid(b) {
		return fail(badJSON.as("Invalid JSON payload"))
	}
	if err := json.Unmarshal(b, &in); err != nil {
		return fail(badRequest.as("Invalid Request: one object of JSON-RPC is expected"))
	}
	if len(in.ID) > 0 && (in.ID[0] == '"' || in.ID[0] == '-' || in.ID[0] >= '0' && in.ID[0] <= '9') &&
		len(in.ID) <= maxContext {
		id = in.ID
	}
	m, old, ok := methodOf(in.Method)
	switch {
	case in.Version != "2.0":
		return fail(badRequest.as("Invalid Request: jsonrpc must be 2.0"))
	case len(in.ID) > 0 && string(in.ID) != "null" && string(id) == "null":
		return fail(badRequest.as("Invalid Request: id is neither a string nor a number"))
	case !ok:
		return fail(noMethod.as("Method not found: %s", api.Cut(in.Method, 100)))
	}
	if err := checkVersion(rc); err != nil {
		return fail(err)
	}
	wrap := func(v any, s State) any {
		if old {
			v = inOld(v, s)
		}
		return rpcAnswer{Version: "2.0", ID: id, Result: v}
	}
	v, ready, err := m(rc, rc.Path("agent"), in.Params, binding{wrap, old})
	switch {
	case err != nil:
		return fail(err)
	case ready != nil:
		return *ready, nil
	}
	return api.OK(wrap(v, "")), nil
}

// mediaType is that of the HTTP+JSON binding.
const mediaType = "application/a2a+json"

// answerREST answers a request of the HTTP+JSON binding.
func answerREST(rc *api.Request) (api.Response, error) {
	fail := func(err error) (api.Response, error) {
		f := faultOf(err)
		if f == nil {
			return api.Response{}, err
		}
		b, err := json.Marshal(f.rest())
		r := api.Raw(mediaType, b)
		r.Status = f.status
		return r, err
	}
	if err := checkVersion(rc); err != nil {
		return fail(err)
	}
	name, params, err := operation(rc)
	if err != nil {
		return fail(err)
	}
	m, _, _ := methodOf(name)
	v, ready, err := m(rc, rc.Path("agent"), params, binding{wrap: func(v any, _ State) any { return v }})
	switch {
	case err != nil:
		return fail(err)
	case ready != nil:
		return *ready, nil
	}
	b, err := api.EncodeJSON(v)
	return api.Raw(mediaType, b), err
}

// operation returns the method that a path of the HTTP+JSON binding means, and its parameters: those of the body, the
// query and the path in one object.
func operation(rc *api.Request) (name string, params json.RawMessage, err error) {
	members := map[string]any{}
	if rc.HTTP.Method == http.MethodPost {
		b, err := rc.RawBody()
		if err != nil {
			return "", nil, err
		}
		if len(b) > 0 && json.Unmarshal(b, &members) != nil || members == nil {
			return "", nil, badJSON.as("The body is not a JSON object")
		}
	}
	query, err := url.ParseQuery(rc.HTTP.URL.RawQuery)
	if err != nil {
		return "", nil, badParams.as("The query of the URL is malformed")
	}
	for k := range query {
		members[k] = typed(k, query.Get(k))
	}
	part := strings.Split(rc.Path("rest"), "/")
	verb := rc.HTTP.Method + " " + part[0]
	id, action := "", ""
	if len(part) > 1 {
		id, action, _ = strings.Cut(part[1], ":")
	}
	switch {
	case verb == "POST message:send" && len(part) == 1:
		name = "SendMessage"
	case verb == "POST message:stream" && len(part) == 1:
		name = "SendStreamingMessage"
	case verb == "GET extendedAgentCard" && len(part) == 1:
		name = "GetExtendedAgentCard"
	case verb == "GET tasks" && len(part) == 1:
		name = "ListTasks"
	case part[0] == "tasks" && len(part) == 2:
		members["id"] = id
		name = map[string]string{"GET ": "GetTask", "POST cancel": "CancelTask", "GET subscribe": "SubscribeToTask",
			"POST subscribe": "SubscribeToTask"}[rc.HTTP.Method+" "+action]
	case part[0] == "tasks" && len(part) <= 4 && part[2] == "pushNotificationConfigs":
		members["taskId"] = part[1]
		if len(part) == 4 {
			members["id"] = part[3]
		}
		name = map[string]string{"POST 3": "CreateTaskPushNotificationConfig", "GET 3": "ListTaskPushNotificationConfigs",
			"GET 4":    "GetTaskPushNotificationConfig",
			"DELETE 4": "DeleteTaskPushNotificationConfig"}[rc.HTTP.Method+" "+strconv.Itoa(len(part))]
	}
	if name == "" {
		return "", nil, noMethod.as("%s %s is no operation of the A2A protocol", rc.HTTP.Method,
			api.Cut(rc.HTTP.URL.Path, 200))
	}
	params, err = json.Marshal(members)
	return name, params, err
}

// typed gives a parameter of a query the type that its method reads.
func typed(name, v string) any {
	switch name {
	case "historyLength", "pageSize":
		if n, err := strconv.Atoi(v); err == nil {
			return n
		}
	case "includeArtifacts":
		return v == "true" || v == "1"
	}
	return v
}
