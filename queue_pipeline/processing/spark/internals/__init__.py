"""Every private part of PySpark that the project uses; no other folder touches one."""
