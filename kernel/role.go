package kernel

import "slices"

// A Role is what a process is for.
type Role string

// The roles of processes. A worker has no agency: it spawns nothing.
const (
	RoleRoot       Role = "root"
	RoleSupervisor Role = "supervisor"
	RoleService    Role = "service"
	RoleWorker     Role = "worker"
	RoleUser       Role = "user"
	RoleCustom     Role = "custom"
)

// Agency is what a process may give its children.
type Agency struct {
	MaxChildren  int           `json:"max_children,omitempty"`  // living ones; 0: no bound of its own
	AllowedRoles []Role        `json:"allowed_roles,omitempty"` // empty: all but root
	Ceiling      *Capabilities `json:"capability_ceiling,omitempty"`
}

// ceiling returns the most that a child of e may have: what e itself has, within the
// ceiling of its agency.
func (e Entry) ceiling() Capabilities {
	if e.Agency.Ceiling == nil {
		return e.Capabilities
	}
	return e.Agency.Ceiling.Capped(e.Capabilities)
}

// maySpawn refuses if e may not have another child of this role.
func (e Entry) maySpawn(role Role, children int) error {
	switch {
	case !e.Capabilities.CanSpawn:
		return errorf(CapabilityDenied, "process %s may not spawn: can_spawn is false", e.PID)
	case e.Role == RoleWorker:
		return errorf(CapabilityDenied, "process %s may not spawn: its role is worker", e.PID)
	case e.Agency.MaxChildren > 0 && children >= e.Agency.MaxChildren:
		return errorf(CapabilityDenied, "process %s has %d children, as many as its agency allows", e.PID, children)
	case len(e.Agency.AllowedRoles) > 0 && !slices.Contains(e.Agency.AllowedRoles, role):
		return errorf(CapabilityDenied, "process %s may not spawn a %s: its agency does not list this role", e.PID, role)
	case role == RoleRoot && !slices.Contains(e.Agency.AllowedRoles, role):
		return errorf(CapabilityDenied, "process %s may not spawn a root process", e.PID)
	}
	return nil
}
