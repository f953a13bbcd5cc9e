package api

import (
	"strings"

	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/ledger"
)

var (
	errNotAdmin = Forbidden("Instance admin required")
	ErrNoAccess = Forbidden("User does not have access to this company")
	errViewer   = Forbidden("Viewer access is read-only")
)

// Trusted reports whether the request came from a trusted machine's own user, to whom
// everything is open.
func (rc *Request) Trusted() bool { return rc.IsBoard() && rc.Credential.Kind == "local" }

// Enters reports whether the caller may see a company at all.
func (rc *Request) Enters(tx *ledger.Tx, of ledger.CompanyID) bool {
	switch {
	case rc.IsAgent():
		return rc.Company == of
	case rc.Trusted():
		return true
	}
	return rc.IsBoard() && people.MayEnter(tx, of, rc.Actor.ID)
}

// Administers reports whether the caller administers the instance.
func (rc *Request) Administers(tx *ledger.Tx) bool {
	return rc.Trusted() || rc.IsBoard() && people.IsAdmin(tx, rc.Actor.ID)
}

// ScopeOf returns the company that a request is about, by its body or its query, "" for the
// mesh, if the caller sees it. what of the mesh is for administrators.
func ScopeOf(rc *Request, said ledger.CompanyID, what string) (of ledger.CompanyID, err error) {
	query, err := rc.QueryUUID("companyId")
	if err != nil {
		return "", err
	}
	of = ledger.CompanyID(strings.ToLower(string(said)))
	if of == "" {
		of = ledger.CompanyID(query)
	}
	err = rc.View(func(tx *ledger.Tx) error {
		switch {
		case of != "" && !Seen(tx, rc, of):
			return NotFound("Company not found")
		case of == "" && !rc.Administers(tx):
			return Forbidden(what + " of the mesh are for administrators; name a company with companyId")
		}
		return nil
	})
	return of, err
}

// checkPerson refuses a person whom the route does not admit: it may be for administrators,
// and its path may name a company. Applying a command checks its permission again.
func (rc *Request) checkPerson() error {
	if !rc.IsBoard() || rc.Trusted() {
		return nil
	}
	if rc.Route.Who == Admin {
		ok, err := rc.StillTrue(func(tx *ledger.Tx) bool { return people.IsAdmin(tx, rc.Actor.ID) })
		if err == nil && !ok {
			err = errNotAdmin
		}
		if err != nil {
			return err
		}
	}
	of := ledger.CompanyID(strings.ToLower(rc.Path("companyId")))
	if of == "" {
		return nil
	}
	ok, err := rc.StillTrue(func(tx *ledger.Tx) bool { return people.MayEnter(tx, of, rc.Actor.ID) })
	switch {
	case err != nil:
		return err
	case !ok:
		return ErrNoAccess
	case rc.HTTP.Method == "GET" || rc.HTTP.Method == "HEAD":
		return nil
	}
	if ok, err = rc.StillTrue(func(tx *ledger.Tx) bool {
		return people.MayWrite(tx, of,
			rc.Actor.ID)
	}); err == nil && !ok {
		err = errViewer
	}
	return err
}

// withoutTokens returns a path without the tokens of invites, so that it can be logged.
func withoutTokens(path string) string {
	if code, ok := strings.CutPrefix(path, "/api/board-claim/"); ok { // the code that makes a user an administrator
		_, rest, more := strings.Cut(code, "/")
		if path = "/api/board-claim/…"; more {
			path += "/" + rest
		}
	}
	if !strings.Contains(path, TokenPrefix) {
		return path
	}
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if strings.HasPrefix(p, TokenPrefix) {
			parts[i] = TokenPrefix + "…"
		}
	}
	return strings.Join(parts, "/")
}
