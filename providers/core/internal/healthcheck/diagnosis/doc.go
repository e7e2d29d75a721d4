// Package diagnosis decides which Machines of a MachineHealthCheck are unhealthy, whether they may be remediated, and which conditions
// their Machines get. It is pure: it reads and writes nothing, and the time is an input.
//
// What does not belong here: reading Machines and Nodes, and writing conditions.
package diagnosis
