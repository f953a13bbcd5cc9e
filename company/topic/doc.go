// Package topic is messages that many may read: topics of the mesh and of companies, kept by
// every node, replayed from a height, and subscriptions that remember how far they have read.
// Delivery to processes is in the room kernel.
package topic
