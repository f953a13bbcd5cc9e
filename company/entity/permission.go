package entity

// A Permission is something that a role allows. Persisted: do not rename.
type Permission string

const (
	CreateAgents    Permission = "agents:create"
	ConfigureAgents Permission = "agents:configure"
	CreateSkills    Permission = "skills:create"
	ManageSpaces    Permission = "environments:manage"
	InviteUsers     Permission = "users:invite"
	ManageUsers     Permission = "users:manage_permissions"
	ApproveJoins    Permission = "joins:approve"
	AssignTasks     Permission = "tasks:assign"
)
