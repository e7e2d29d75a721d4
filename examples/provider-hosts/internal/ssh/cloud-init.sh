# Hands the data on standard input to cloud-init, as a NoCloud seed of a new instance. What runs is limited to what bootstrap data
# uses: cloud-init must not change the Host's network, its name or its SSH keys. It needs cloud-init, as Debian and Ubuntu package it.
set -eu
umask 077
seed=/var/lib/cloud/seed/nocloud
cloud-init clean --logs --seed
mkdir -p "$seed"
cat >"$seed/user-data"
cat >"$seed/meta-data" <<END
instance-id: $CLAIM
local-hostname: $(hostname)
provider_id: $PROVIDER_ID
END
cat >/etc/cloud/cloud.cfg.d/99-cluster-api-hosts.cfg <<END
datasource_list: [NoCloud, None]
network: {config: disabled}
preserve_hostname: true
ssh_deletekeys: false
users: []
cloud_init_modules: [bootcmd, write_files, ca_certs, disk_setup, mounts, users_groups]
cloud_config_modules: [ntp, runcmd]
cloud_final_modules: [scripts_user]
END
cloud-init init --local
cloud-init init
cloud-init modules --mode=config
cloud-init modules --mode=final
# Every bootstrap provider's data writes this file at its end.
test -e /run/cluster-api/bootstrap-success.complete
