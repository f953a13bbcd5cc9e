package company

import "github.com/selvage-mesh/selvage/ledger"

// Handlers returns the handlers of all commands of companies.
func Handlers() ledger.Mux {
	m := ledger.Mux{}
	for _, k := range Kinds() {
		if k.Do != nil {
			m[k.Name] = k.Do
		}
	}
	return m
}

func init() {
	Compose(peopleRules, careRules, routineRules, moneyRules, skillRules, inboxRules, fileRules, placeRules, paperRules, secretRules, transferRules)
}

// One issue.sweep removes threadChunk rows, each of which may name all parts of a long
// document.
const _ = uint(ledger.MaxTouched - threadChunk*(3*(MaxDocument/MaxPart+2)+2))

// Deleting an issue at all of its bounds stays within one command.
const _ = uint(ledger.MaxTouched - 4*MaxChildren - 4*MaxBlocked - 3*MaxComments - 2*MaxReads - 2*MaxApprovalLinks - 2*(MaxVoices+1) - 100)
