package company

import "github.com/selvage-mesh/selvage/ledger"

// isAgent reports whether an agent asks, and isBoard whether a person does.
func isAgent(c *ledger.Context) bool { return c.Cmd.Actor.Type == "agent" }

func isBoard(c *ledger.Context) bool { return c.Cmd.Actor.Type == "user" }

func errBoardOnly() error { return ledger.Refuse(ledger.Forbidden, nil, "Board access required") }

// actedBy returns the actor as the two columns of a row.
func actedBy(c *ledger.Context) (agent, user NullText) {
	switch c.Cmd.Actor.Type {
	case "agent":
		return NullText(c.Cmd.Actor.ID), ""
	case "user":
		return "", NullText(c.Cmd.Actor.ID)
	}
	return "", ""
}
