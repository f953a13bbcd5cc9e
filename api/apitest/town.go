package apitest

import "testing"

// FirstOf is the ID of a list's first row.
func FirstOf(t testing.TB, a Answer) string {
	t.Helper()
	list, _ := a.Want(t, 200, "").Decode(t).([]any)
	if len(list) == 0 {
		t.Fatalf("an empty list: %s", a.Body)
	}
	return list[0].(map[string]any)["id"].(string)
}
