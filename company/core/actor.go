package core

import "github.com/selvage-mesh/selvage/ledger"

// IsAgent reports whether an agent gives the command, IsBoard whether a person does.
func IsAgent(c *ledger.Context) bool { return c.Cmd.Actor.Type == "agent" }

func IsBoard(c *ledger.Context) bool { return c.Cmd.Actor.Type == "user" }

func ErrBoardOnly() error { return ledger.Refuse(ledger.Forbidden, nil, "Board access required") }

// ActedBy returns the actor as the two columns of a row.
func ActedBy(c *ledger.Context) (agent, user NullText) {
	switch c.Cmd.Actor.Type {
	case "agent":
		return NullText(c.Cmd.Actor.ID), ""
	case "user":
		return "", NullText(c.Cmd.Actor.ID)
	}
	return "", ""
}
