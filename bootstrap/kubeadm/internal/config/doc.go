// Package config reconciles KubeadmConfigs: it makes the bootstrap data of the Machine that owns a config.
//
// The steps, in order, and what each guarantees:
//
//	owner           the Machine that owns the config, and its Cluster, are known
//	format          what cannot be rendered is refused at once
//	infrastructure  nothing is made before the cluster's infrastructure, and so its endpoint, is ready
//	adopt           a config whose data exists already, because we were interrupted or the Machine brought
//	                data of its own, is ready and makes none
//	token           the bootstrap token of a machine that has not joined yet does not expire
//	initialize      the one Machine that holds the init lock gets data that initializes the control plane
//	join            once the control plane is initialized, all others get data that joins them
//
// Data is created once: the Secret is named after the config, and the token after the config's UID. A
// Secret is written before the config says that it is ready. Caches may be old and another leader may have acted, so what
// cannot be taken back is decided on live state: whether the control plane is still to be initialized, who holds the
// lock, whose a Secret of the data's name is, whether a machine joined whose token is gone. Nobody joins without a pinned
// authority unless the config says so. What was sent to an API server is never repeated in errors.
//
// Configs of MachinePools wait for the controller of that kind.
package config
