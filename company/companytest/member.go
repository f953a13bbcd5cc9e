package companytest

import (
	"strings"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/ledger"
)

func HexHash(digit string) string { return strings.Repeat(digit, 64) }

// Enlist makes a user a member by hand.
func (d *Desk) Enlist(user string, r people.Role) people.Member {
	m := people.Member{ID: people.MemberID(d.Company, user), Company: d.Company, User: user, Status: people.MemberActive,
		CreatedAt: core.TimeOf(d.Now), UpdatedAt: core.TimeOf(d.Now)}.WithRole(r, people.LocalBoard, core.TimeOf(d.Now))
	people.Members.Put(d.Tx, d.Company, m.ID, m)
	return m
}

// AsUser is what Authorize says to a user with a session.
func (d *Desk) AsUser(user, kind string, of ledger.CompanyID) error {
	c := d.Context(Board, kind, nil)
	c.Cmd.Actor, c.Cmd.Credential, c.Cmd.Company = ledger.Actor{Type: "user", ID: user},
		ledger.Credential{Kind: "board_key", ID: UID(7)}, of
	people.BoardKeys.Put(d.Tx, UID(7), people.BoardKey{ID: UID(7), User: user, Name: "k", Hash: HexHash("7")})
	return people.Authorize(c)
}
