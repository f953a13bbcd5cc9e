package people

import "github.com/selvage-mesh/selvage/ledger"

// LocalBoard is the user who acts without a credential in mode LocalTrusted.
const LocalBoard = "local-board"

// A Person is a user as others see them.
type Person struct {
	ID    string  `json:"id"`
	Email string  `json:"email"`
	Name  string  `json:"name"`
	Image *string `json:"image"`
}

// PersonOf returns the user with an ID.
func PersonOf(tx *ledger.Tx, id string) (Person, bool) {
	if id == LocalBoard {
		return Person{ID: LocalBoard, Email: "local@paperclip.local", Name: "Board"}, true
	}
	u, ok := UserByID(tx, id)
	return u.Person(), ok
}

// IsAdmin reports whether a user administers the instance. An administrator has access to
// every company.
func IsAdmin(tx *ledger.Tx, user string) bool {
	if user == LocalBoard {
		return true
	}
	u, ok := UserByID(tx, user)
	return ok && u.Admin && !u.Suspended()
}
