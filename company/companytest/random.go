package companytest

import "testing"

// Nil2 is a testing.TB for a desk that is not looked at.
type Nil2 struct{ testing.TB }

func (Nil2) Helper() {}
