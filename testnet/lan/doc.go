// Package lan has tests only: boxes on a network of their own, made of network
// namespaces on a bridge, find each other by multicast and join, with the program
// that users run. They need root, ip and nft; elsewhere they are skipped.
package lan
