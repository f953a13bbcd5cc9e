package main

import (
	"os"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// TestDashboard: Grafana's own types of a dashboard read ours, with no member that they do not know and none
// missing that they require. Whether its panels have figures is asked of a real Prometheus in testnet/upkeep.
func TestDashboard(t *testing.T) {
	b, err := os.ReadFile("../monitoring/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard.Dashboard
	if err := d.UnmarshalJSONStrict(b); err != nil && err.Error() != "" { // it returns an empty list of errors
		t.Error(err)
	}
	if err := d.Validate(); err != nil {
		t.Error(err)
	}
	if d.Title == nil || *d.Title != "Selvage" || len(d.Panels) < 20 {
		t.Errorf("the dashboard has %d panels", len(d.Panels))
	}
}
