package node

import (
	"testing"

	"github.com/google/uuid"
	"github.com/selvage-mesh/selvage/adapter/runlog"
	"github.com/selvage-mesh/selvage/company/place"
	"github.com/selvage-mesh/selvage/ledger"
)

// An operation that the mesh refuses to start, such as one that has ended, keeps its
// log.
func TestAnOperationThatIsRefusedLeavesTheLog(t *testing.T) {
	n := start(t, t.TempDir())
	of, id := ledger.CompanyID(uuid.NewString()), uuid.NewString()
	ref := runlog.Ref(of, operationLogs, id)
	log, err := n.work.logs.Create(ref)
	if err != nil {
		t.Fatal(err)
	}
	log.Write("stdout", "what it said\n")
	before, err := log.Close()
	if err != nil {
		t.Fatal(err)
	}
	c := spaceCommand{w: place.ExecutionWorkspace{ID: uuid.NewString(), Company: of}, phase: place.OperationProvision,
		name: "again", line: "true", alreadyOpen: id}
	if err := n.carryOutIn(t.Context(), c); err == nil {
		t.Fatal("it was carried out")
	}
	if after, err := n.work.logs.Read(ref, 0, 0); err != nil || after.Size != before.Bytes {
		t.Errorf("of %d bytes %d are left: %v", before.Bytes, after.Size, err)
	}
}
