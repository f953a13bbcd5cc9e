// Package identity says who a node is: its keys and IDs, what it signs and
// certifies, how it is admitted to a mesh, and how the mesh's secrets are sealed.
//
// Everything here is a value or a small file; nothing runs. Formats that are
// stored or sent are described above the code that writes them and pinned by
// golden files in testdata.
package identity
