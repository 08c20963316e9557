"""Small whole files, for `FORMAT.samples`: v4, v6 and v7 by scipy, v7.3 by this plugin."""

from __future__ import annotations

from base64 import b85decode
from zlib import decompress

_PACKED = {
    "scipy_v4.mat": (b"c-muNU|?VbVrB*iU;^R_22}9D9?Ebq#-h4}Au%Z#08=gl!2"),
    "scipy_v6.mat": (
        b"c-r%I4DoSvQZUssQ1EpO(M`+DNmU5QNi0drFUqx2D9A6)tk6+#E=o--Nlj76&$ChpPApOI%P&(fGE^`$"
        b"vobWXGBQ#yGB7e@AOkRZ`tkuO10ZGtVh$kYgi5hO`HVo!45k?wDu6T-"
        b"h{wpp0MZwLq>l|v9}^UV^i@L5Re)Rk!yZC&I6wssKqvtR0N7L-Vg"
    ),
    "scipy_v7.mat": (
        b"c-r%I4DoSvQZUssQ1EpO(M`+DNmU5QNi0drFUqx2D9A6)tk6+#E=o--Nlj76&$ChpPApOI%P&(fGE^`$"
        b"vobWXGBQ#yGB7e@AOkRZ`tk!QO(3qA^Ef#n!GIyjOyL<rk{=sKLhC2V#u<`6#zr9wnQ8+46FV6hBvv!L"
        b"1Zi-EYp`HAlH+iO@kkGkz=5tK=}eb<cuqRZ;_u*{aAos@5Pn7`hqxpmmw1**c4mBkepwu>GHhU8^@F`y"
        b"f}7!(8p~dgVODU%G@!PtL2Q3GW8y*yopVfKhdETd8%*Q{q!nI1PdT(yo@vGbHA4dihFQ~?7y#ZWR9X"
    ),
    "v73.mat": (
        b"c-"
        b"r%I4DoSvQZUyuR`7KU(M`+DN!3v(FUl+_NzGG8s#GXSOwP|MOD!r<@NjW6RVYr*NX<=DFw`?JP|#B#6E"
        b"MI4lcz7kC>T)C35-@=E-"
        b"5ZBhl7KGg+TxsHxTMS6fkq4@?rWD2$;_ZG?5WVKY&F!g9e1b%*cRhB07M`axri)Fd~`9#vlPPmj!M^MF"
        b"6q_hKd0VPez~%86gZPAL3s|CWrttTpa@rz5tjl02ku`ldRBiU}9usgosLj`M_Z0Ks5;hco+<z=JEm+a4"
        b"`6S^Lc!7PGWH}NL(0fCc@s*%)Al{Fw0{!Q;dR9FbYP&NC1pX0IR)D6#"
    ),
}

SAMPLES = {name: decompress(b85decode(packed)) for name, packed in _PACKED.items()}
