package memory

import (
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// Many records about the same thing become one: the new one is added with their IDs. They
// stay, with their texts and where they came from, and searches leave them out unless they
// are asked for. An agent does so with what it may change, and with what is about the same
// issue as the new one. When the new one is forgotten, they are found again.

// replace notes that a new record takes the place of others, and returns their IDs.
func replace(c *ledger.Context, by Record, ids []string) ([]string, error) {
	if len(ids) > MaxReplaced {
		return nil, ledger.Refuse(ledger.Invalid, nil, "replaces: at most %d memories", MaxReplaced)
	}
	ids = core.SortedSet(ids)
	for _, id := range ids {
		was, ok := Of(c.Tx, by.Company, id)
		switch {
		case !ok || core.IsAgent(c) && !was.ReadableBy(c.Cmd.Actor.ID):
			return nil, ledger.Refuse(ledger.NotFound, nil, "replaces: memory %.36q not found", id)
		case core.IsAgent(c) && string(was.Agent) != c.Cmd.Actor.ID && was.Author != c.Cmd.Actor.ID &&
			(was.Issue == "" || was.Issue != by.Issue):
			return nil, ledger.Refuse(ledger.Forbidden, nil,
				"replaces: memory %.36q is of others; an agent adds one in its place that has the same issueId", id)
		case was.ReplacedBy != "":
			return nil, ledger.Refuse(ledger.Conflict, nil, "replaces: memory %.36q has given its place to %s; name that one",
				id, was.ReplacedBy)
		case by.Private && (!was.Private || was.Agent != by.Agent):
			return nil, ledger.Refuse(ledger.Invalid, nil,
				"replaces: memory %.36q is read by others, who do not read a private one in its place", id)
		case !by.Private && was.Private:
			return nil, ledger.Refuse(ledger.Invalid, nil,
				"replaces: memory %.36q is private; add a private one in its place", id)
		}
		next := was
		next.ReplacedBy, next.UpdatedAt = core.NullText(by.ID), by.CreatedAt
		store(c.Tx, was, next)
	}
	return ids, nil
}

// giveBack is told that a record goes: those whose place it took are found again.
func giveBack(c *ledger.Context, by Record) {
	for _, id := range by.Replaces {
		if was, ok := Of(c.Tx, by.Company, id); ok && string(was.ReplacedBy) == by.ID {
			next := was
			next.ReplacedBy, next.UpdatedAt = "", core.TimeOf(c.Now)
			store(c.Tx, was, next)
		}
	}
}
