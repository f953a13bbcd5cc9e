// Package rules is all rooms of the company in one literal list: the handlers and the hooks
// of a node. Packages that execute commands, or read rows of several rooms, import it.
package rules

import (
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/app"
	"github.com/selvage-mesh/selvage/company/care"
	"github.com/selvage-mesh/selvage/company/cron"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/file"
	"github.com/selvage-mesh/selvage/company/govern"
	"github.com/selvage-mesh/selvage/company/inbox"
	"github.com/selvage-mesh/selvage/company/memory"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/company/paper"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/company/place"
	"github.com/selvage-mesh/selvage/company/push"
	"github.com/selvage-mesh/selvage/company/replica"
	"github.com/selvage-mesh/selvage/company/routine"
	"github.com/selvage-mesh/selvage/company/secret"
	"github.com/selvage-mesh/selvage/company/service"
	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/company/topic"
	"github.com/selvage-mesh/selvage/company/transfer"
	"github.com/selvage-mesh/selvage/ledger"
)

// Handlers returns the handlers of all commands of companies.
func Handlers() ledger.Mux {
	m := ledger.Mux{}
	for _, k := range company.Kinds() {
		if k.Do != nil {
			m[k.Name] = k.Do
		}
	}
	return m
}

func init() {
	company.Compose(people.Rules, care.Rules, routine.Rules, money.Rules, skill.Rules, inbox.Rules, file.Rules,
		place.Rules, paper.Rules, secret.Rules, transfer.Rules, memory.Rules, push.Rules, app.Rules, treeRules,
		replica.Rules,
		govern.Rules,
		topic.Rules,
		cron.Rules,
		service.Rules)
}

// One issue.sweep deletes ThreadChunk rows, each of which may refer to all parts of a long
// document.
const _ = uint(ledger.MaxTouched - company.ThreadChunk*(3*(paper.MaxDocument/company.MaxPart+2)+2))

// Deleting the largest possible issue fits one command.
const _ = uint(ledger.MaxTouched - 4*entity.MaxChildren - 4*company.MaxBlocked - 3*entity.MaxComments - 2*
	entity.MaxReads - 2*money.MaxApprovalLinks - 2*(inbox.MaxVoices+1) - 100)
