package ignition

import (
	"strings"

	"github.com/flatcar/ignition/config/v2_3/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
)

const (
	sudoersFolder = "/etc/sudoers.d/"
	sshdPath      = "/etc/ssh/sshd_config"
	// sshdDefaults are those of Flatcar Container Linux, which the file replaces.
	sshdDefaults = `# Use most defaults for sshd configuration.
Subsystem sftp internal-sftp
ClientAliveInterval 180
UseDNS no
UsePAM yes
PrintLastLog no # handled by PAM
PrintMotd no # handled by PAM
`
)

// usersOf returns the accounts to create or change.
func usersOf(in []bootstrapv1.User, path *field.Path) ([]types.PasswdUser, field.ErrorList) {
	var out []types.PasswdUser
	var all field.ErrorList
	seen := map[string]bool{}
	for i, u := range in {
		at := path.Index(i)
		all = append(all, checkUser(u, at)...)
		if seen[u.Name] {
			all = append(all, invalid(at.Child("name"), "must be unique, but another user has the same name"))
		}
		seen[u.Name] = true
		user := types.PasswdUser{Name: u.Name, Gecos: u.Gecos, HomeDir: u.HomeDir, Shell: u.Shell, PrimaryGroup: u.PrimaryGroup}
		for _, g := range groupsOf(u) {
			user.Groups = append(user.Groups, types.Group(g))
		}
		if u.Passwd != "" && !ptr.Deref(u.LockPassword, false) { // Ignition locks accounts without password.
			user.PasswordHash = ptr.To(u.Passwd)
		}
		for _, k := range u.SSHAuthorizedKeys {
			user.SSHAuthorizedKeys = append(user.SSHAuthorizedKeys, types.SSHAuthorizedKey(strings.TrimSpace(k)))
		}
		out = append(out, user)
	}
	return out, all
}

// groupsOf returns the additional groups of a user.
func groupsOf(u bootstrapv1.User) []string {
	var out []string
	for g := range strings.SplitSeq(u.Groups, ",") {
		if g = strings.TrimSpace(g); g != "" {
			out = append(out, g)
		}
	}
	return out
}

// checkUser checks the values of a user. Useradd would fail on the machine, which then does not start.
func checkUser(u bootstrapv1.User, at *field.Path) field.ErrorList {
	all := checkAccount(u.Name, at.Child("name"))
	if ptr.Deref(u.Inactive, false) {
		all = append(all, invalid(at.Child("inactive"), unsupported))
	}
	columns := []struct {
		name, value string
		path        bool
	}{
		{name: "gecos", value: u.Gecos}, {name: "homeDir", value: u.HomeDir, path: true},
		{name: "shell", value: u.Shell, path: true}, {name: "passwd", value: u.Passwd},
	}
	for _, c := range columns {
		all = append(all, checkLine(c.value, at.Child(c.name))...)
		if strings.Contains(c.value, ":") {
			all = append(all, invalid(at.Child(c.name), "must not contain a colon, which separates the columns of /etc/passwd"))
		}
		if c.path && c.value != "" && !strings.HasPrefix(c.value, "/") {
			all = append(all, invalid(at.Child(c.name), "must be an absolute path"))
		}
	}
	if g := u.PrimaryGroup; g != "" {
		all = append(all, checkAccount(g, at.Child("primaryGroup"))...)
	}
	for _, g := range groupsOf(u) {
		all = append(all, checkAccount(g, at.Child("groups"))...)
	}
	for i, k := range u.SSHAuthorizedKeys {
		all = append(all, checkLine(strings.TrimSpace(k), at.Child("sshAuthorizedKeys").Index(i))...)
	}
	return all
}

// accessFiles returns the files by which users may run commands as other users, and log in with a password.
func accessFiles(in []bootstrapv1.User, path *field.Path) ([]types.File, field.ErrorList) {
	var out []types.File
	var all field.ErrorList
	var passwords []string
	seen := map[string]bool{}
	for i, u := range in {
		if u.Passwd != "" && !ptr.Deref(u.LockPassword, true) {
			passwords = append(passwords, u.Name)
		}
		rule := strings.TrimSpace(u.Sudo)
		if rule == "" {
			continue
		}
		all = append(all, checkLine(rule, path.Index(i).Child("sudo"))...)
		if strings.HasSuffix(rule, `\`) {
			all = append(all, invalid(path.Index(i).Child("sudo"), "must not end with a backslash"))
		}
		name := sudoersFolder + strings.ReplaceAll(u.Name, ".", "_") // Sudo ignores files with a dot in their name.
		if seen[name] {
			all = append(all, invalid(path.Index(i).Child("name"), "the sudo rule of another user is in the same file, %s", name))
		}
		seen[name] = true
		out = append(out, file(name, 0o600, []byte(u.Name+" "+rule+"\n")))
	}
	if len(passwords) > 0 {
		out = append(out,
			file(sshdPath, 0o600, []byte(sshdDefaults+"\nMatch User "+strings.Join(passwords, ",")+"\n  PasswordAuthentication yes\n")))
	}
	return out, all
}
