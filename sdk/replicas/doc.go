// Package replicas reports about objects that have Machines, as MachineSets, MachineDeployments and control planes: metav1 conditions and
// counters that follow from the conditions of the Machines and from numbers of replicas. All functions are pure.
package replicas
