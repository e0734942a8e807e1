# SPDX-License-Identifier: Apache-2.0
"""Apache 2.4 as Debian configures it: mpm_event, keep-alive and TLS have Debian's values.

Unlike Debian's, it compresses nothing (a body of zeros would shrink to nothing), writes no access log, and
sends files by sendfile(2) and never by mmap(2), which would allocate the holes of sparse files on tmpfs.
"""

from __future__ import annotations

from netjoule.loads.transfer.private_folder import FOLDER
from netjoule.loads.transfer.servers.site import CERTIFICATE, FILES, KEY, STATE, Recipe, Site

HTTP_VERSIONS = ("1.1", "2")
_MODULES = ("mpm_event", "authz_core", "mime", "socache_shmcb", "ssl", "http2")
_DEBIAN = """\
Timeout 300
KeepAlive On
MaxKeepAliveRequests 100
KeepAliveTimeout 5
HostnameLookups Off
StartServers 2
MinSpareThreads 25
MaxSpareThreads 75
ThreadLimit 64
ThreadsPerChild 25
MaxRequestWorkers 150
MaxConnectionsPerChild 0
SSLProtocol all -SSLv3
SSLCipherSuite HIGH:!aNULL
"""


def recipe(site: Site) -> Recipe:
    """How it is started."""
    load = "LoadModule {0}_module /usr/lib/apache2/modules/mod_{0}.so\n"
    modules = "".join(map(load.format, _MODULES))
    configuration = f"""\
ServerRoot {FOLDER}
ServerName {site.bracketed}
DefaultRuntimeDir {STATE}
PidFile {STATE}/apache.pid
Mutex file:{STATE} default
ErrorLog {STATE}/error.log
LogLevel warn
{modules}{_DEBIAN}TypesConfig /etc/mime.types
SSLSessionCache shmcb:{STATE}/ssl_scache(512000)
EnableSendfile On
EnableMMAP Off
Listen {site.plain} http
Listen {site.tls} https
DocumentRoot {FILES}
<Directory />
  Options FollowSymLinks
  AllowOverride None
  Require all denied
</Directory>
<Directory {FILES}>
  Require all granted
</Directory>
<VirtualHost {site.tls}>
  Protocols h2 http/1.1
  SSLEngine on
  SSLCertificateFile {CERTIFICATE}
  SSLCertificateKeyFile {KEY}
</VirtualHost>
"""
    return Recipe(
        program="apache2",
        arguments=("-DFOREGROUND", "-f", f"{FOLDER}/apache.conf"),
        configuration={"apache.conf": configuration},
        version_arguments=("-v",),
    )
