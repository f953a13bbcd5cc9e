package api

import (
	"strings"
	"testing"
)

func TestSettingsAndSidebarsAreKept(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	if a := h.call("PATCH", "/api/instance/settings/general", `{"keyboardShortcuts":true,"backupRetention":{"dailyDays":3,"weeklyWeeks":2,"monthlyMonths":0}}`); a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if a := h.call("GET", "/api/instance/settings/general", ""); !strings.Contains(string(a.body), `"keyboardShortcuts":true`) || !strings.Contains(string(a.body), `"dailyDays":3`) {
		t.Errorf("general settings %s", a.body)
	}
	if a := h.call("PATCH", "/api/instance/settings/experimental", `{"enableDecisions":true}`); a.status != 200 || !strings.Contains(string(a.body), `"enableDecisions":true`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	for path, body := range map[string]string{"general": `{"other":1}`, "experimental": `{"enableDecisions":1}`} {
		if a := h.call("PATCH", "/api/instance/settings/"+path, body); a.status != 400 {
			t.Errorf("%s %s: %d %s", path, body, a.status, a.body)
		}
	}
	if a := h.call("PATCH", "/api/instance/settings/experimental", `{"enableNothing":true}`); a.status != 400 {
		t.Errorf("an unknown flag: %d %s", a.status, a.body)
	}
	id := NewID()
	if a := h.call("PUT", "/api/sidebar-preferences/me", `{"orderedIds":["`+id+`"]}`); a.status != 200 || !strings.Contains(string(a.body), id) || strings.Contains(string(a.body), `"updatedAt":null`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := h.call("GET", "/api/sidebar-preferences/me", ""); !strings.Contains(string(a.body), id) {
		t.Errorf("the sidebar is %s", a.body)
	}
}
