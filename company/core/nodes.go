package core

// PeersPath is where the nodes of the mesh stand in the resource tree.
const PeersPath = "/network/peers"

// NodePath returns where a node stands in the resource tree.
func NodePath(node string) string { return PeersPath + "/" + node }
