package companytest

import (
	"encoding/json"
	"testing"

	"github.com/selvage-mesh/selvage/company/paper"
)

func (d *Desk) Asks(t testing.TB, who As, issue, kind, payload string,
	change ...func(*paper.CreateInteraction)) (in paper.Interaction) {
	t.Helper()
	p := paper.CreateInteraction{ID: d.ID(), Issue: issue, Kind: kind, Payload: json.RawMessage(payload)}
	for _, f := range change {
		f(&p)
	}
	d.Must(t, who, "interaction.create", p, &in)
	return in
}

const FourTasks = `{"version":1,"tasks":[{"clientKey":"b","parentClientKey":"a","title":"Below"},` +
	`{"clientKey":"a","title":"Above","billingCode":"X"},{"clientKey":"c","title":"Other"}]}`
