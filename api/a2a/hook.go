package a2a

import (
	"encoding/json"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/push"
	"github.com/selvage-mesh/selvage/ledger"
)

// setHook stores where a client wants to be told of a task.
func setHook(rc *api.Request, i entity.Issue, h Hook) (Hook, error) {
	auth := map[string]string{}
	set := push.Set{ID: api.NewID(), Issue: i.ID, Name: h.ID, URL: h.URL}
	if h.Token != "" {
		auth["token"] = h.Token
	}
	if a := h.Auth; a != nil {
		if set.Scheme = a.Scheme; set.Scheme == "" && len(a.Schemes) > 0 {
			set.Scheme = a.Schemes[0]
		}
		if a.Credentials != "" {
			auth["credentials"] = a.Credentials
		}
	}
	if len(auth) > 0 {
		set.Auth, _ = json.Marshal(auth) // strings can be encoded
	}
	id, err := api.Do[string](rc, push.KindSet, i.Company, set)
	if err != nil {
		return Hook{}, err
	}
	h.Task = i.ID
	if h.ID == "" {
		h.ID = id
	}
	return shown(h), nil
}

// shown returns a config without its secrets.
func shown(h Hook) Hook {
	h.Token = ""
	if h.Auth != nil {
		h.Auth = &HookAuth{Scheme: h.Auth.Scheme, Schemes: h.Auth.Schemes}
	}
	return h
}

// hookOf returns a stored config as it is shown.
func hookOf(h push.Hook) Hook {
	out := Hook{ID: h.Name, Task: h.Issue, URL: h.URL}
	if h.Scheme != "" {
		out.Auth = &HookAuth{Scheme: h.Scheme}
	}
	return out
}

var noHook = noTask.as("Push notification config not found")

// hooks reads the configs of a task.
func hooks(rc *api.Request, task string) (out []push.Hook, i entity.Issue, err error) {
	err = rc.View(func(tx *ledger.Tx) (err error) {
		if i, err = issueOf(tx, rc, task); err == nil {
			out = push.OfIssue(tx, i)
		}
		return err
	})
	return out, i, err
}

// hookNamed returns one config of a task.
func hookNamed(rc *api.Request, task, name string) (push.Hook, error) {
	all, _, err := hooks(rc, task)
	if err != nil {
		return push.Hook{}, err
	}
	for _, h := range all {
		if h.Name == name || name == "" {
			return h, nil
		}
	}
	return push.Hook{}, noHook
}
