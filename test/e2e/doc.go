// Package e2e tests whole clusters on real machines: containers of the Docker provider that run systemd, containerd, kubelet
// and kubeadm, with a real etcd. It uses the vocabulary of test/journey, and needs Docker and the images of the nodes:
//
//	make e2e
//
// While a Cluster changes, a probe (probe_test.go) asks the API server, etcd and an application all the time; the test logs
// how many requests failed, and the longest interruption.
//
// What belongs here: what only real machines show. What does not: journeys that the in-memory provider can show, which are in
// test/journey, and tests of the Docker provider alone, which are in providers/infrastructure-docker.
package e2e
