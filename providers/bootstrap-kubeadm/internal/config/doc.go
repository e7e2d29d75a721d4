// Package config reconciles KubeadmConfigs: it generates the bootstrap data of the Machine or MachinePool that owns a config.
//
// The steps, in order, and what each guarantees:
//
//	owner           the Machine or MachinePool that owns the config, and its Cluster, are known
//	format          a config that cannot be rendered in its format is rejected immediately
//	infrastructure  no data is generated before the cluster's infrastructure, and so its endpoint, is ready
//	adopt           a config whose data already exists, after an interruption or because the Machine was created
//	                with its own data, is ready, and no data is generated
//	token           the bootstrap token of a machine that has not joined yet does not expire; the one of a MachinePool, whose
//	                machines may join at any time, is replaced before it expires
//	initialize      the one Machine that holds the init lock gets data that initializes the control plane
//	join            once the control plane is initialized, all others get data that joins them
//
// Data is generated once: the name of the Secret is that of the config, and the token's is derived from the config's UID. Data of a
// MachinePool is generated again with each new token, whose name is derived from that of the previous one, and if its spec changes:
// then the name of the Secret has a suffix that is derived from the spec. The Secret is written
// before the config is ready. Caches may be stale and another leader may have acted, so irreversible
// decisions depend on live reads: whether the control plane must be initialized, which Machine holds the
// lock, which config owns the data's Secret, whether a machine has joined whose token has expired. No machine joins without a pinned
// CA unless the config allows it. Errors do not repeat what was sent to an API server.
package config
