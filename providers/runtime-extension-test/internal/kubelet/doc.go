// Package kubelet changes flags of the kubelets of running machines, for updates in place.
//
//	config.go   what two KubeadmConfigs differ in, and which flags one wants: pure functions
//	script.sh   changes the flags on a machine, and restarts its kubelet; rolls back if that fails
//	pod.go      the Pod that runs the script on a Node
//	updater.go  takes a Node through the change, one call after another
//	connect.go  connects to workload clusters
//
// Everything is done through the API server of the workload cluster, so that it works with machines of any infrastructure provider. The
// Pod and the script find out what is left to do: calls can be repeated, and lost, at any time.
//
// What does not belong here: hooks, and what users set.
package kubelet
