package acp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// serve answers a request of the agent.
func (x *exchange) serve(method string, params json.RawMessage) (any, *rpcError) {
	switch method {
	case "session/request_permission":
		return x.permit(params)
	case "fs/read_text_file":
		return x.read(params)
	case "fs/write_text_file":
		return x.write(params)
	}
	return nil, &rpcError{Code: noMethod, Message: "there is no " + method + " here"}
}

// permit answers by policy. It selects the option that allows once if the policy allows the
// request, else the one that rejects.
func (x *exchange) permit(params json.RawMessage) (any, *rpcError) {
	var p struct {
		Tool struct {
			Kind  string `json:"kind"`
			Title string `json:"title"`
		} `json:"toolCall"`
		Options []struct {
			ID   string `json:"optionId"`
			Kind string `json:"kind"`
		} `json:"options"`
	}
	if json.Unmarshal(params, &p) != nil {
		return nil, &rpcError{Code: badParams, Message: "the request is malformed"}
	}
	allow := x.policy == "" || x.policy == "allow"
	if x.policy == "edits" {
		switch p.Tool.Kind {
		case "read", "edit", "move", "search", "think":
			allow = true
		}
	}
	want, word := []string{"allow_once", "allow_always"}, "allowed"
	if !allow {
		want, word = []string{"reject_once", "reject_always"}, "rejected"
	}
	x.log("system", "[selvage] the agent asked for permission, "+word+": "+p.Tool.Title+"\n")
	for _, kind := range want {
		for _, o := range p.Options {
			if o.Kind == kind {
				return map[string]any{"outcome": map[string]string{"outcome": "selected", "optionId": o.ID}}, nil
			}
		}
	}
	return map[string]any{"outcome": map[string]string{"outcome": "cancelled"}}, nil
}

// within opens the one of the run's folders that contains path. It does not follow links that
// lead out of the folder.
func (x *exchange) within(path string) (*os.Root, string, *rpcError) {
	if !filepath.IsAbs(path) {
		return nil, "", &rpcError{Code: badParams, Message: "path is not absolute"}
	}
	for _, dir := range x.roots {
		rel, err := filepath.Rel(dir, filepath.Clean(path))
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			return nil, "", &rpcError{Code: internal, Message: "the folder can not be opened"}
		}
		return root, rel, nil
	}
	return nil, "", &rpcError{Code: badParams, Message: "path is outside of the run's folders"}
}

func (x *exchange) read(params json.RawMessage) (any, *rpcError) {
	var p struct {
		Path  string `json:"path"`
		Line  *int   `json:"line"`
		Limit *int   `json:"limit"`
	}
	if json.Unmarshal(params, &p) != nil {
		return nil, &rpcError{Code: badParams, Message: "the request is malformed"}
	}
	root, rel, bad := x.within(p.Path)
	if bad != nil {
		return nil, bad
	}
	defer root.Close()
	st, err := root.Stat(rel)
	if err != nil || !st.Mode().IsRegular() || st.Size() > maxFile {
		return nil, &rpcError{Code: badParams, Message: fmt.Sprintf("there is no file of at most %d bytes", maxFile)}
	}
	b, err := root.ReadFile(rel)
	if err != nil {
		return nil, &rpcError{Code: internal, Message: reason(err)}
	}
	text := strings.ToValidUTF8(string(b), "\uFFFD")
	if p.Line != nil || p.Limit != nil {
		lines := strings.SplitAfter(text, "\n")
		from := 0
		if p.Line != nil {
			from = min(max(*p.Line-1, 0), len(lines))
		}
		to := len(lines)
		if p.Limit != nil {
			to = min(from+max(*p.Limit, 0), to)
		}
		text = strings.Join(lines[from:max(to, from)], "")
	}
	return map[string]string{"content": text}, nil
}

func (x *exchange) write(params json.RawMessage) (any, *rpcError) {
	var p struct {
		Path    string `json:"path"`
		Content string `json:"content"`
	}
	if json.Unmarshal(params, &p) != nil || len(p.Content) > maxFile {
		return nil, &rpcError{Code: badParams,
			Message: fmt.Sprintf("the request is malformed, or has more than %d bytes", maxFile)}
	}
	if x.policy == "deny" {
		return nil, &rpcError{Code: badParams, Message: "the agent may not write"}
	}
	root, rel, bad := x.within(p.Path)
	if bad != nil {
		return nil, bad
	}
	defer root.Close()
	if err := root.MkdirAll(filepath.Dir(rel), 0o755); err != nil {
		return nil, &rpcError{Code: internal, Message: reason(err)}
	}
	if err := root.WriteFile(rel, []byte(p.Content), 0o644); err != nil {
		return nil, &rpcError{Code: internal, Message: reason(err)}
	}
	return nil, nil
}

// reason returns the text of a file error without its path.
func reason(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return err.Error()
}
