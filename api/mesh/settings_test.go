package mesh_test

import (
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
)

func TestSettingsAndSidebarsAreKept(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	if a := h.Call("PATCH", "/api/instance/settings/general",
		`{"keyboardShortcuts":true,"backupRetention":{"dailyDays":3,"weeklyWeeks":2,"monthlyMonths":0}}`); a.Status != 200 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if a := h.Call("GET", "/api/instance/settings/general", ""); !strings.Contains(string(a.Body),
		`"keyboardShortcuts":true`) || !strings.Contains(string(a.Body), `"dailyDays":3`) {
		t.Errorf("general settings %s", a.Body)
	}
	if a := h.Call("PATCH", "/api/instance/settings/experimental", `{"enableDecisions":true}`); a.Status != 200 ||
		!strings.Contains(string(a.Body), `"enableDecisions":true`) {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	h.Call("PATCH", "/api/instance/settings/general", `{"other":1}`).Want(t, 400, `"keys":["other"]`)
	h.Call("PATCH", "/api/instance/settings/experimental", `{"enableDecisions":1}`).
		Want(t, 400, `"path":["enableDecisions"]`)
	h.Call("PATCH", "/api/instance/settings/experimental", `{"enableNothing":true}`).
		Want(t, 400, `"keys":["enableNothing"]`)
	id := api.NewID()
	if a := h.Call("PUT", "/api/sidebar-preferences/me", `{"orderedIds":["`+id+`"]}`); a.Status != 200 ||
		!strings.Contains(string(a.Body), id) || strings.Contains(string(a.Body), `"updatedAt":null`) {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	if a := h.Call("GET", "/api/sidebar-preferences/me", ""); !strings.Contains(string(a.Body), id) {
		t.Errorf("the sidebar is %s", a.Body)
	}
}
