// Package build builds the images of clusters of the Docker provider: nodes, and the load balancer of their API servers.
//
//	builder.go       Builder: what is cached, progress, loading the result into Docker
//	node.go          the image of a node: Debian, files of our own, Kubernetes, and images
//	preloaded.go     the images that kubeadm needs, and that of the pod network
//	loadbalancer.go  the image of the load balancer
//
// How files, layers and stores of images are written is in the packages that it uses.
package build
