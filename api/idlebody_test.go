package api_test

import (
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
)

// Where a body says nothing it is looked at nevertheless: what is no JSON object, is of
// another type, or is too long is refused before anything happens; {} is what clients
// send, and an object with members is taken as it is elsewhere, where they are unknown.
func TestABodyThatSaysNothingIsLookedAt(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	w := newTown(h, "Idle")
	nobody := strings.NewReplacer("{id}", api.NewID(), "{issueId}", api.NewID())
	tried := 0
	for _, route := range h.Routes() {
		if route.In != nil || route.MaxBody > 0 || route.Method == "GET" || changesAll(route) {
			continue
		}
		var headers []string
		if route.Who == api.Agent {
			headers = append(headers, "Authorization: Bearer "+w.token)
		}
		path, _ := w.path(route)
		before, _ := h.Node.Ledger.Head()
		for body, want := range map[string]int{`{"a":`: 400, `{"a":1,"a":2}`: 400, `7`: 400, `[]`: 400, `"x"`: 400, `{"a":"` +
			strings.Repeat("x", api.MaxBody) + `"}`: 413} {
			tried++
			if a := h.Call(route.Method, path, body, headers...); a.Status != want {
				t.Errorf("%s %s with %.20s answered %d %.200s", route.Method, route.Path, body, a.Status, a.Body)
			}
		}
		if a := h.Call(route.Method, path, `{}`, append(headers, "Content-Type: text/plain")...); a.Status != 400 {
			t.Errorf("%s %s with a text answered %d %.200s", route.Method, route.Path, a.Status, a.Body)
		}
		if after, _ := h.Node.Ledger.Head(); after != before {
			t.Errorf("%s %s did something", route.Method, route.Path)
		}
		path = nobody.Replace(route.Path)
		for _, body := range []string{``, `{}`, `null`, `{"theirs":[1]}`} {
			if strings.Contains(route.Path, "{id}") { // a row that is nowhere, so that each is answered alike
				if a := h.Call(route.Method, path, body, headers...); a.Status == 400 && strings.Contains(string(a.Body), "JSON") {
					t.Errorf("%s %s with %q answered %d %.200s", route.Method, route.Path, body, a.Status, a.Body)
				}
			}
		}
	}
	if tried < 500 {
		t.Errorf("only %d bodies were sent", tried)
	}
	for _, body := range []string{``, `{}`, `null`, `{"theirs":[1]}`} {
		h.Call("POST", "/api/agents/"+w.agent+"/pause", body).Want(t, 200, `"paused"`)
		h.Call("POST", "/api/agents/"+w.agent+"/resume", body).Want(t, 200, `"idle"`)
	}
}
