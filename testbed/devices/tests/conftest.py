# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import hypothesis

# A busy host is no defect of what is tested.
hypothesis.settings.register_profile("netjoule", deadline=None)
hypothesis.settings.load_profile("netjoule")
