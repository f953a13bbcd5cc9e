package company

// A WakeSource is why an agent was woken. Persisted: do not rename.
type WakeSource string

const (
	WakeTimer      WakeSource = "timer"
	WakeAssignment WakeSource = "assignment"
	WakeOnDemand   WakeSource = "on_demand"
	WakeAutomation WakeSource = "automation"
)
