package company

import (
	"encoding/json"

	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// MaxNote bounds the details of a note, in bytes. The details of a change stay small.
const MaxNote = 4 << 10

// Note is the payload of activity.note: a line that the board or an agent adds to the
// activity log directly. The entry names the actor who gave the command.
type Note struct {
	Action     string          `cbor:"1,keyasint"`
	EntityType string          `cbor:"2,keyasint"`
	EntityID   string          `cbor:"3,keyasint"`
	Details    json.RawMessage `cbor:"4,keyasint,omitempty"`
}

const KindActivityNote = "activity.note"

var activityKinds = []Kind{
	{Name: KindActivityNote, From: FromBoard | FromNode, Weight: Weights.Talk, Do: ledger.Typed(note)},
}

func note(c *ledger.Context, p Note) (any, error) {
	for _, text := range []string{p.Action, p.EntityType, p.EntityID} {
		if text == "" || len(text) > entity.MaxName {
			return nil, ledger.Refuse(ledger.Invalid, nil, "action, entityType and entityId are needed, at most %d bytes each",
				entity.MaxName)
		}
	}
	details, err := core.CheckObject("details", p.Details, MaxNote)
	if err != nil {
		return nil, err
	}
	if details != nil {
		details = conceal.RedactConfig(details)
	}
	c.Record(ledger.Change{Action: p.Action, EntityType: p.EntityType, EntityID: p.EntityID, Details: details})
	return nil, nil
}

// ShowActivity returns activities as they are shown.
func ShowActivity(tx *ledger.Tx, company ledger.CompanyID, list []ledger.Activity) []entity.ActivityRow {
	row, _ := entity.CompanyOf(tx, company)
	out := make([]entity.ActivityRow, len(list))
	for n, a := range list {
		a.Actor, a.Run = entity.DoneBy(a.Actor, a.Run, a.Change)
		out[n] = entity.ActivityRow{ID: a.ID, Company: a.Company, ActorType: a.Actor.Type, ActorID: a.Actor.ID,
			Action: a.Action, EntityType: a.EntityType,
			EntityID: a.EntityID, Run: core.NullText(a.Run), ResponsibleUser: row.DefaultResponsibleUser,
			Details: core.OrNull(a.Details), CreatedAt: core.TimeOf(a.At), Height: a.Height}
		if a.Kind == KindActivityNote {
			out[n].ResponsibleUser = "" // a note, not an action
			continue
		}
		switch a.Actor.Type {
		case "agent":
			out[n].Agent = core.NullText(a.Actor.ID)
		case "user":
			out[n].ResponsibleUser = core.NullText(a.Actor.ID)
		}
	}
	return out
}

func RecordLive(c *ledger.Context, ch ledger.Change) {
	n := len(ch.Details)
	for _, other := range c.Changes() {
		n += len(other.Details)
	}
	if n <= maxLiveChangeBytes && len(c.Changes()) < maxLiveChanges {
		c.Record(ch)
	}
}
